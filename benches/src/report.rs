use std::{fs, io, path::Path};

use serde::Serialize;

/// Prints `rows` under `head`, columns aligned: the first to the left, the others to the right.
pub(crate) fn print_table(head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
    let rows: Vec<&Vec<String>> = [&head].into_iter().chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        println!("{}", cells.collect::<String>().trim_end());
    }
}

/// Writes `report` to `file`, and makes the directory for it.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write_json(file: &Path, report: &impl Serialize) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(file, serde_json::to_string_pretty(report)? + "\n")?;
    println!("written to {}", file.display());
    Ok(())
}
