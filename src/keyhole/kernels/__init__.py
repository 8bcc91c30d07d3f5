"""All that compiles and is shared: compilation, random numbers, sorting, vectors."""
