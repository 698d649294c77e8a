"""Traces in files: one zip of JSON and safetensors members, read and written without pickle."""
