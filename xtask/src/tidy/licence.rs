//! Reads licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Returns true if the allowed licences satisfy the expression; an invalid expression is not allowed.
pub(super) fn allows(expression: &str, allowed: &[&str]) -> bool {
    // The deprecated separator of alternatives is a slash.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut reader = Reader { words: spaced.split_whitespace().collect(), at: 0, allowed };
    reader.any() == Some(true) && reader.at == reader.words.len()
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut holds = self.all()?;
        while self.takes("OR") {
            holds |= self.all()?;
        }
        Some(holds)
    }

    fn all(&mut self) -> Option<bool> {
        let mut holds = self.one()?;
        while self.takes("AND") {
            holds &= self.one()?;
        }
        Some(holds)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let holds = self.any()?;
            return self.takes(")").then_some(holds);
        }
        let mut name = (*self.words.get(self.at)?).to_owned();
        self.at += 1;
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.words.get(self.at)?);
            self.at += 1;
        }
        Some(self.allowed.contains(&name.as_str()))
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        let allowed = ["MIT", "Zlib", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        let cases = [
            ("MIT", true),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only", false),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
            ("GPL-2.0-only/MIT", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("GPL-3.0-only OR MIT AND Zlib", true),
            ("(MIT", false),
            ("MIT Zlib", false),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(allows(expression, &allowed), expected, "{expression}");
        }
    }
}
