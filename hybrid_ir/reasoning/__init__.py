"""The retrieve-reason loop (Algorithm 1), answer parsing and the extractive reasoner."""
