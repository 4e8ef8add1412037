//! Columns of text, for people.

use std::fmt;

/// Width of a terminal by default.
const WIDTH: usize = 80;

/// Rows of cells, each column as wide as its widest cell.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self {
            rows: vec![headings.iter().map(ToString::to_string).collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    }

    /// Whether the cells below the heading are numbers, or nothing at all.
    fn is_numeric(&self, column: usize) -> bool {
        let cells = self.rows[1..].iter().filter_map(|row| row.get(column));
        let numeric =
            |cell: &str| cell.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        cells.map(String::as_str).all(numeric)
    }
}

impl fmt::Display for Table {
    /// Numbers to the right, text to the left, two spaces between; no space at a line's end.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = self.width(column);
                if self.is_numeric(column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            });
            writeln!(
                formatter,
                "{}",
                cells.collect::<Vec<_>>().join("  ").trim_end()
            )?;
        }
        Ok(())
    }
}

/// `text` in lines of 80 columns at most, all but the first indented by `indent`.
pub fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines += &format!("\n{:indent$}", "");
            width = indent;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines += word;
        width += length;
    }
    lines
}

/// `number` with a comma between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        [comma.then_some(','), Some(digit)].into_iter().flatten()
    };
    digits.chars().enumerate().flat_map(group).collect()
}

/// A part of 1, in percent.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_be() {
        let mut table = Table::new(&["shard", "load", "state"]);
        table.row(["a", "9.1 %", "ok"].map(String::from));
        table.row(["bb", "90.9 %", "unreachable"].map(String::from));
        assert_eq!(
            table.to_string(),
            "shard    load  state\na       9.1 %  ok\nbb     90.9 %  unreachable\n"
        );
    }

    #[test]
    fn a_text_is_wrapped_between_words() {
        let long = "word ".repeat(33);
        let lines: Vec<String> = wrapped(&long, 2).lines().map(str::to_owned).collect();
        let widths: Vec<_> = lines.iter().map(String::len).collect();
        assert_eq!(widths, [79, 76, 11]);
        assert!(lines[1].starts_with("  word"), "{lines:?}");
        assert_eq!(wrapped("", 2), "");
    }

    #[test]
    fn thousands_are_grouped() {
        let shown = [0, 12, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "12", "999", "1,000", "12,345", "1,234,567"]);
    }
}
