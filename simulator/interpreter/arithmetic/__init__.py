"""What integer arithmetic of a kernel gets wrong: indices that leave their type, divisions by zero."""
