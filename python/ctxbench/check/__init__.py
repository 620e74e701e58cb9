"""Plays ctxbench against a program in any language and says which rules it breaks.

python3 -m ctxbench.check mine.py
python3 -m ctxbench.check node mine.mjs
"""
