"""JavaScript projects with the runner of Node.js, and with tape."""

from javascript.projects import project

QUEUE = project("queue", {
    "type": "module", "scripts": {"test": "node --test"},
}, {
    "src/queue.js": """
        /** A queue whose smallest priority comes first, and the oldest of equal ones. */
        export class Queue {
          items = [];

          push(value, priority = 0) {
            this.items.push({ value, priority });
            return this;
          }

          pop() {
            return this.items.pop()?.value;
          }

          get size() {
            return this.items.length;
          }

          /** Runs the task with each value in order. Returns the results. */
          async drain(task) {
            const results = [];
            while (this.size) task(this.pop());
            return results;
          }
        }
        """,
    "test/queue.test.js": """
        import assert from "node:assert/strict";
        import { describe, it } from "node:test";
        import { Queue } from "../src/queue.js";

        describe("queue", () => {
          it("is empty at first", () => {
            assert.equal(new Queue().size, 0);
            assert.equal(new Queue().pop(), undefined);
          });

          it("counts values", () => {
            assert.equal(new Queue().push(1).push(2).size, 2);
          });

          it("pops by priority", () => {
            const queue = new Queue().push("c", 3).push("a", 1).push("b", 2);
            assert.deepEqual([queue.pop(), queue.pop(), queue.pop()], ["a", "b", "c"]);
          });

          it("pops the oldest first", () => {
            const queue = new Queue().push("a").push("b");
            assert.equal(queue.pop(), "a");
          });
        });
        """,
    "test/drain.test.js": """
        import assert from "node:assert/strict";
        import test from "node:test";
        import { Queue } from "../src/queue.js";

        test("drains nothing", async () => {
          assert.deepEqual(await new Queue().drain(() => 1), []);
        });

        test("drains in order", async () => {
          const queue = new Queue().push(2, 2).push(1, 1);
          assert.deepEqual(await queue.drain(async (value) => value * 10), [10, 20]);
        });
        """,
}, {"src/queue.js": [
    ("return this.items.pop()?.value;",
     "const first = this.items.reduce((a, b) => (b.priority < a.priority ? b : a), this.items[0]);"
     "\n    this.items = this.items.filter((item) => item !== first);\n    return first?.value;"),
    ("task(this.pop());", "results.push(await task(this.pop()));")]},
    ("pops by priority", "pops the oldest first", "drains in order", "# pass 3", "# fail 3"),
    ("src/queue.js", "new tested.Queue().push(5, 9).push(6, 8).push(7, 8).pop() -> 6",
     "new tested.Queue().push(3).push(4).drain((v) => Promise.resolve(v + 1)) -> [4,5]"))
TQ, TD, QS = "test/queue.test.js", "test/drain.test.js", "src/queue.js"

QUERY = project("query", {
    "main": "index.js", "scripts": {"test": "tape 'test/**/*.js'"},
    "devDependencies": {"tape": "5.9.0"},
}, {
    "index.js": """
        'use strict';

        /** Returns the values of a query string. A repeated key has a list. */
        exports.parse = function (query) {
          var result = {};
          query.split('&').filter(Boolean).forEach(function (pair) {
            var parts = pair.split('=');
            result[decodeURIComponent(parts[0])] = decodeURIComponent(parts[1]);
          });
          return result;
        };

        exports.stringify = function (values) {
          return Object.keys(values).map(function (key) {
            return encodeURIComponent(key) + '=' + encodeURIComponent(values[key]);
          }).join('&');
        };
        """,
    "test/parse.js": """
        'use strict';

        var test = require('tape');
        var query = require('../');

        test('pairs', function (t) {
          t.plan(2);
          t.deepEqual(query.parse(''), {});
          t.deepEqual(query.parse('a=1&b=2'), { a: '1', b: '2' });
        });

        test('plus is a space', function (t) {
          t.plan(1);
          t.equal(query.parse('a=x+y').a, 'x y');
        });

        test('repeated keys', function (t) {
          t.deepEqual(query.parse('a=1&a=2&a=3').a, ['1', '2', '3']);
          t.end();
        });
        """,
    "test/stringify.js": """
        'use strict';

        var test = require('tape');
        var query = require('../');

        test('escapes', function (t) {
          t.equal(query.stringify({ 'a b': '&' }), 'a%20b=%26');
          t.end();
        });

        test('lists', function (t) {
          t.equal(query.stringify({ a: ['1', '2'] }), 'a=1&a=2');
          t.end();
        });
        """,
}, {"index.js": [
    ("    result[decodeURIComponent(parts[0])] = decodeURIComponent(parts[1]);",
     "    var key = decodeURIComponent(parts[0]);\n"
     "    var value = decodeURIComponent(parts[1].replace(/\\+/g, ' '));\n"
     "    result[key] = key in result ? [].concat(result[key], value) : value;"),
    ("    return encodeURIComponent(key) + '=' + encodeURIComponent(values[key]);",
     "    return [].concat(values[key]).map(function (value) {\n"
     "      return encodeURIComponent(key) + '=' + encodeURIComponent(value);\n"
     "    }).join('&');")]},
    ("not ok 3", "not ok 4", "not ok 6", "# pass  3", "# fail  3"),
    ("index.js", 'whole.parse("q=1+2&z=3&q=4") -> {"q":["1 2","4"],"z":"3"}',
     'whole.stringify({ k: [7, 8, 9] }) -> "k=7&k=8&k=9"'))
QP, QT, QI = "test/parse.js", "test/stringify.js", "index.js"
