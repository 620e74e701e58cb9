"""Context managers of other libraries as strategies: the real code, unmodified.

    ctxbench --strategy 'x=exec:python3 -m ctxbench.adapters.langchain summarization' login-bug
"""
