"""How results are drawn: colours, dashes, marks and names, panels of curves, figures on disk.

Nothing here plays or estimates anything. Matplotlib is imported when the first figure is drawn.
"""
