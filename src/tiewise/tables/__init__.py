"""Tables of results as text and HTML, and plain records of them."""
