"""This machine as the engine: Beam's local runner, or plain threads and processes where nothing is encoded."""
