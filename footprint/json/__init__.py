"""JSON: values to text and back by their types (`codec`), what all answers share, and large texts read in pieces."""
