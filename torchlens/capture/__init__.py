"""Running a model and writing down what it does."""
