"""How results are drawn and tabulated: colours, dashes, marks and names, panels of curves, files.

Nothing here plays or estimates anything. Matplotlib is imported when the first figure is drawn.
"""
