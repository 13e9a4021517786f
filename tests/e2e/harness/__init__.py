"""What the end-to-end tests stand on: the real program, real nginx, a scripted origin and a client that sees every byte."""
