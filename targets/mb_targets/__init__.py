"""Kernels, devices and the targets that find, rewrite, build and run them."""
