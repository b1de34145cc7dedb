//! Aligned text.

use std::fmt::{self, Display};

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under a header, columns as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a table whose titles are all empty prints no header.
    pub(crate) fn new<const N: usize>(columns: [(&str, Align); N]) -> Self {
        Self { columns: columns.map(|(title, align)| (title.to_owned(), align)).into(), rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are dropped.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(self.columns[column].0.chars().count())
    }

    fn line(&self, widths: &[usize], cells: &[String]) -> String {
        let columns = self.columns.iter().zip(widths).zip(cells);
        let padded = columns.map(|(((_, align), &width), cell)| match align {
            Align::Left => format!("{cell:<width$}"),
            Align::Right => format!("{cell:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

impl Display for Table {
    /// Lines without a line break after the last one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let header = titles.iter().any(|title| !title.is_empty()).then_some(&titles);
        let lines: Vec<String> =
            header.into_iter().chain(&self.rows).map(|cells| self.line(&widths, cells)).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("op", Align::Left), ("size", Align::Right)]);
        table.row(["write".into(), "8".into()]);
        table.row(["read".into(), "65536".into()]);
        assert_eq!(table.to_string(), "op      size\nwrite      8\nread   65536");
    }

    #[test]
    fn without_titles_there_is_no_header() {
        let mut table = Table::new([("", Align::Left), ("", Align::Left)]);
        table.row(["a".into(), "é".into()]);
        table.row(["bb".into(), String::new()]);
        assert_eq!(table.to_string(), "a   é\nbb");
    }
}
