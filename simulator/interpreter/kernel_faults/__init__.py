"""What a kernel gets wrong and an interpreter sees: indices that leave their type, divisions by zero, accesses outside."""
