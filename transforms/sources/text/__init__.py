"""What all formats of text share: how a file becomes text, how text is cast to a type and proven, what appends cast."""
