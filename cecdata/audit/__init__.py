"""The audit of a recipe: how well its errors resemble real ones."""
