"""A Python project with a gate that a person wrote: a make target that calls a script."""

from python.projects import project

CART = project("cart", {
    "Makefile": """
        .PHONY: test
        test:
        \t./scripts/test.sh
        """,
    "scripts/test.sh": """
        #!/bin/sh
        set -eu
        PATH="$PWD/.venv/bin:$PATH"
        python -m pytest -q tests
        """,
    "cart/__init__.py": '''
        """A shopping cart."""


        class Cart:
            def __init__(self):
                self.items = {}

            def put(self, name, cents, count=1):
                self.items[name] = (cents, count)

            def count(self):
                return len(self.items)

            def total(self):
                """Returns the sum in cents. Orders of 10,000 cents and more get 5 % off."""
                return sum(cents * count for cents, count in self.items.values())

            def names(self):
                return sorted(self.items)
        ''',
    "tests/test_cart.py": '''
        import pytest

        from cart import Cart


        @pytest.fixture
        def full():
            cart = Cart()
            cart.put("pen", 150, 2)
            cart.put("desk", 12000)
            return cart


        def test_count(full):
            assert full.count() == 3


        def test_discount(full):
            assert full.total() == 11685


        def test_put_twice(full):
            full.put("pen", 150, 3)
            assert full.count() == 6


        def test_empty():
            assert Cart().total() == 0


        def test_names(full):
            assert full.names() == ["desk", "pen"]
        ''',
}, {"cart/__init__.py": [
    ("self.items[name] = (cents, count)",
     "self.items[name] = (cents, self.items.get(name, (0, 0))[1] + count)"),
    ("return len(self.items)", "return sum(count for _, count in self.items.values())"),
    ("        return sum(cents * count for cents, count in self.items.values())",
     "        full = sum(cents * count for cents, count in self.items.values())\n"
     "        return full if full < 10000 else full * 95 // 100")]},
    "make test", ("test_count", "test_discount", "test_put_twice", "3 failed, 2 passed"),
    ("from cart import Cart; c = Cart(); c.put('x', 4000, 2); c.put('x', 4000)",
     "c.count() -> 3", "c.total() -> 11400"),
    gates="version: 1\nhooks:\n  stop:\n    - name: tests\n      command: make test\n"
          "      timeout: 5m\n",
    executable=("scripts/test.sh",))
TC, CARTS, SCRIPT = "tests/test_cart.py", "cart/__init__.py", "scripts/test.sh"
