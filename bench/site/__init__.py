"""What the site is made of beside its pages: papers, pictures, notebooks, tutorials."""
