"""What an operation costs a pipe: cycles from the figures of a product, with their grades."""
