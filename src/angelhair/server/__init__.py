"""The doors and what drives the engine behind them. The HTTP doors come with the server; this much runs everywhere."""
