"""The harness of the end-to-end tests: the real program, real nginx, a scripted origin and a client that sees every byte."""
