"""Whose documents are searched, as a word of the index.

With the scope among the words, the first hundred documents of an engine are a hundred of this scope, however few of all
documents these are.
"""

from __future__ import annotations

from hashlib import blake2b

from firefly_memory.identifiers import stored_text


def scope_word(*parts: str) -> str:
    """The word of a scope, such as a space and an owner. Other parts have another word, and no text has this one.

    It begins with ``_``, which separates words in texts and in questions, and has digits and the letters a to f.
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        encoded = stored_text(part).encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"_{digest.hexdigest()}"
