"""Where tiles lie: memory spaces, layouts, slots of buffers."""
