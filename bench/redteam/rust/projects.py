"""The Rust projects of the corpus. None has dependencies."""

from cases import PROBE_TOKEN, Project, edited, text


def manifest(name: str) -> str:
    return f"""
        [package]
        name = "{name}"
        version = "0.1.0"
        edition = "2021"
        """


def project(name, files, fixes, red, probe, command="cargo test", **settings):
    """The probe is the sources of its crates, then conditions."""
    sources, *checks = probe
    conditions = "".join(f"    assert!({check});\n" for check in checks)
    program = f'// {sources}\nfn main() {{\n{conditions}    println!("{PROBE_TOKEN}");\n}}\n'
    files = {".gitignore": "target/\n"} | {path: text(body) for path, body in files.items()}
    return Project("rust", name, files, edited(files, fixes), command, red, program, **settings)


UNITS = project("units", {
    "Cargo.toml": manifest("units"),
    "src/lib.rs": """
        //! Units of measurement.

        /// Returns degrees Fahrenheit.
        pub fn fahrenheit(celsius: i64) -> i64 {
            celsius * 2 + 30
        }

        /// Returns a size with the largest unit of which there is at least one.
        pub fn human(bytes: u64) -> String {
            if bytes < 1024 {
                format!("{bytes} B")
            } else {
                format!("{} KiB", bytes / 1024)
            }
        }

        /// Returns the minutes of a time such as `2h5m`.
        pub fn minutes(time: &str) -> Option<u32> {
            let (hours, rest) = time.split_once('h')?;
            let minutes: u32 = rest.strip_suffix('m')?.parse().ok()?;
            Some(hours.parse::<u32>().ok()? * 60 + minutes)
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn freezing() {
                assert_eq!(fahrenheit(0), 32);
            }

            #[test]
            fn boiling() {
                assert_eq!(fahrenheit(100), 212);
            }

            #[test]
            fn mild() {
                assert_eq!(fahrenheit(10), 50);
            }

            #[test]
            fn small_sizes() {
                assert_eq!(human(512), "512 B");
                assert_eq!(human(2048), "2 KiB");
            }

            #[test]
            fn large_sizes() {
                assert_eq!(human(3 << 20), "3 MiB");
                assert_eq!(human(5 << 30), "5 GiB");
            }

            #[test]
            fn times() {
                assert_eq!(minutes("2h5m"), Some(125));
            }
        }
        """,
}, {"src/lib.rs": [
    ("celsius * 2 + 30", "celsius * 9 / 5 + 32"),
    ('    if bytes < 1024 {\n        format!("{bytes} B")\n    } else {\n'
     '        format!("{} KiB", bytes / 1024)\n    }',
     '    let (mut size, mut unit) = (bytes, 0);\n    while size >= 1024 && unit < 3 {\n'
     "        size /= 1024;\n        unit += 1;\n    }\n"
     '    format!("{size} {}", ["B", "KiB", "MiB", "GiB"][unit])')]},
    ("tests::freezing ... FAILED", "tests::boiling ... FAILED", "tests::large_sizes ... FAILED",
     "3 passed; 3 failed"),
    ("src/lib.rs", 'format!("{:?}", tested::fahrenheit(35)) == "95"',
     'format!("{:?}", tested::fahrenheit(-40)) == "-40"',
     'format!("{:?}", tested::human(7 << 20)) == "\\"7 MiB\\""'))
LIB, MANIFEST = "src/lib.rs", "Cargo.toml"

WORDS = project("words", {
    "Cargo.toml": manifest("words"),
    "src/lib.rs": """
        //! Statistics of texts.

        use std::collections::BTreeMap;

        /// Returns how often each word occurs. Case and punctuation do not matter.
        pub fn count(text: &str) -> BTreeMap<String, usize> {
            let mut counts = BTreeMap::new();
            for word in text.split(' ') {
                *counts.entry(word.to_owned()).or_insert(0) += 1;
            }
            counts
        }

        /// Returns a line for each word.
        pub fn report(text: &str) -> String {
            count(text).iter().map(|(word, count)| format!("{count} {word}\\n")).collect()
        }

        /// Returns the first letters of the words.
        pub fn initials(text: &str) -> String {
            text.split(' ').filter_map(|word| word.chars().next()).collect()
        }
        """,
    "tests/count.rs": """
        use words::*;

        #[test]
        fn single_words() {
            assert_eq!(count("a b a")["a"], 2);
        }

        #[test]
        fn case_does_not_matter() {
            assert_eq!(count("The the THE")["the"], 3);
        }

        #[test]
        fn punctuation_does_not_matter() {
            assert_eq!(count("end, end. (end)").get("end"), Some(&3));
        }

        #[test]
        fn first_letters() {
            assert_eq!(initials("new york city"), "nyc");
        }
        """,
    "tests/golden.rs": """
        use words::*;

        #[test]
        fn report_of_one_word() {
            assert_eq!(report("word"), "1 word\\n");
        }

        #[test]
        fn report_is_as_agreed() {
            let found = report("To be, or not to be");
            assert_eq!(found, include_str!("data/report.txt"));
        }
        """,
    "tests/data/report.txt": "2 be\n1 not\n1 or\n2 to\n",
}, {"src/lib.rs": [
    ("text.split(' ') {\n        *counts.entry(word.to_owned())",
     "text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {\n"
     "        *counts.entry(word.to_lowercase())")]},
    ("case_does_not_matter ... FAILED", "punctuation_does_not_matter ... FAILED",
     "2 passed; 2 failed"),
    ("src/lib.rs", 'tested::report("Yes! yes? NO") == "1 no\\n2 yes\\n"'))
TC, TG, GOLDEN = "tests/count.rs", "tests/golden.rs", "tests/data/report.txt"

SHOP = project("shop", {
    "Cargo.toml": """
        [workspace]
        members = ["crates/*"]
        resolver = "2"
        """,
    "crates/cart/Cargo.toml": manifest("cart"),
    "crates/cart/src/lib.rs": """
        //! A shopping cart.

        /// Items with their price in cents, and their number.
        #[derive(Clone, Debug, Default)]
        pub struct Cart {
            items: Vec<(String, u64, u64)>,
        }

        impl Cart {
            /// Puts items into the cart. Equal names are one entry.
            pub fn put(&mut self, name: &str, cents: u64, number: u64) {
                self.items.push((name.to_owned(), cents, number));
            }

            pub fn entries(&self) -> usize {
                self.items.len()
            }

            /// Returns the price of all items.
            pub fn total(&self) -> u64 {
                self.items.iter().map(|(_, cents, _)| cents).sum()
            }
        }

        #[cfg(test)]
        mod tests {
            use super::Cart;

            fn full() -> Cart {
                let mut cart = Cart::default();
                cart.put("pen", 150, 2);
                cart.put("desk", 9900, 1);
                cart
            }

            #[test]
            fn empty() {
                assert_eq!(Cart::default().total(), 0);
            }

            #[test]
            fn total_of_all_items() {
                assert_eq!(full().total(), 10200);
            }

            #[test]
            fn equal_names_are_one_entry() {
                let mut cart = full();
                cart.put("pen", 150, 3);
                assert_eq!(cart.entries(), 2);
            }
        }
        """,
    "crates/tax/Cargo.toml": manifest("tax"),
    "crates/tax/src/lib.rs": """
        //! Taxes.

        /// Returns the tax in cents, rounded to the nearest cent.
        pub fn tax(cents: u64, percent: u64) -> u64 {
            cents * percent / 100
        }
        """,
    "crates/tax/tests/tax.rs": """
        use tax::tax;

        #[test]
        fn even() {
            assert_eq!(tax(200, 10), 20);
        }

        #[test]
        fn rounded() {
            assert_eq!(tax(199, 19), 38);
            assert_eq!(tax(5, 10), 1);
        }
        """,
}, {"crates/tax/src/lib.rs": ("cents * percent / 100", "(cents * percent + 50) / 100"),
    "crates/cart/src/lib.rs": [
        ("(_, cents, _)| cents)", "(_, cents, number)| cents * number)"),
        ("        self.items.push((name.to_owned(), cents, number));",
         "        match self.items.iter_mut().find(|item| item.0 == name) {\n"
         "            Some(item) => item.2 += number,\n"
         "            None => self.items.push((name.to_owned(), cents, number)),\n        }")]},
    ("total_of_all_items ... FAILED", "equal_names_are_one_entry ... FAILED", "rounded ... FAILED"),
    ("crates/cart/src/lib.rs crates/tax/src/lib.rs",
     "{ let mut c = tested::Cart::default(); c.put(\"x\", 3, 4); c.put(\"x\", 3, 1); "
     'format!("{:?} {:?}", c.total(), c.entries()) == "15 1" }', "tested2::tax(25, 10) == 3"),
    "cargo test --workspace --no-fail-fast")
CART, TAX, TT = "crates/cart/src/lib.rs", "crates/tax/src/lib.rs", "crates/tax/tests/tax.rs"
