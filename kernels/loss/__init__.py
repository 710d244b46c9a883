"""Binary cross entropy with logits and its gradient."""
