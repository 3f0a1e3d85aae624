"""Looking inside a model: its input, one step of attention, all of it, senses, what each layer would say, reasons."""
