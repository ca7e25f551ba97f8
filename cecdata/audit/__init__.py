"""How well a recipe's errors resemble people's: coverage and bits against real ones."""
