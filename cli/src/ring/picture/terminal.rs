//! The ring in a terminal: in colour, or in letters alone.

use std::{collections::BTreeSet, f64::consts::TAU, fmt};

use super::{Arc, Ring, colour};
use crate::table::{grouped, percent};

/// The hole, as a part of the radius.
const HOLE: f64 = 0.6;

/// Between the ring and the text next to it.
const GAP: &str = "  ";

/// Ends all colours.
pub(super) const PLAIN: &str = "\x1b[0m";

/// The mark of an arc if its shard has no letter of its own.
const NO_LETTER: char = '?';

/// Migrating slots are striped, along the ring. This is the width of a stripe in points.
const STRIPE: f64 = 2.0;

/// The ring, to be printed.
#[derive(Debug)]
pub(in crate::ring) struct Terminal<'a> {
    ring: &'a Ring,
    /// Columns that the ring takes, twice as many as rows.
    width: usize,
    colours: bool,
    turns: Vec<(f64, f64)>,
    /// Of each shard.
    letters: Vec<char>,
}

impl<'a> Terminal<'a> {
    /// `ring`, `width` columns wide.
    pub(in crate::ring) fn new(ring: &'a Ring, width: usize, colours: bool) -> Self {
        let width = width - width % 2;
        // Three points of the middle of the ring.
        let seen_from = 3.0 / (TAU * width as f64 / 2.0 * (1.0 + HOLE) / 2.0);
        Self {
            ring,
            width,
            colours,
            turns: ring.turns(seen_from),
            letters: letters(ring),
        }
    }

    /// The arc at a point, and how far from the hole that is. Points are as high as they are wide: half a
    /// row.
    fn at(&self, x: f64, y: f64) -> Option<(&Arc, f64)> {
        let radius = self.width as f64 / 2.0;
        let (right, down) = (x - radius, y - radius);
        let outward = right.hypot(down) - HOLE * radius;
        if !(0.0..=(1.0 - HOLE) * radius).contains(&outward) {
            return None;
        }
        let turn = (right.atan2(-down) / TAU).rem_euclid(1.0);
        let at = self.turns.partition_point(|&(_, end)| end <= turn);
        let arc = self.ring.arcs.get(at).or(self.ring.arcs.last());
        arc.map(|arc| (arc, outward))
    }

    /// The colour of the point in column `x`, half a row `y`.
    fn paint(&self, x: usize, y: usize) -> Option<u8> {
        let (arc, outward) = self.at(x as f64 + 0.5, y as f64 + 0.5)?;
        let striped = (outward / STRIPE) as usize % 2 == 1;
        let shard = arc.to.filter(|_| striped).unwrap_or(arc.owner);
        Some(colour(shard).ansi)
    }

    /// A character in colour, its upper half and its lower, and how to come to its colours.
    fn painted(&self, x: usize, row: usize) -> (String, char) {
        match (self.paint(x, 2 * row), self.paint(x, 2 * row + 1)) {
            (None, None) => (String::new(), ' '),
            (Some(upper), None) => (format!("\x1b[38;5;{upper}m"), '▀'),
            (None, Some(lower)) => (format!("\x1b[38;5;{lower}m"), '▄'),
            (Some(upper), Some(lower)) => (format!("\x1b[38;5;{upper};48;5;{lower}m"), '▀'),
        }
    }

    /// A letter: of the owner, or, in capitals, of the next shard.
    fn lettered(&self, x: usize, row: usize) -> char {
        match self.at(x as f64 + 0.5, 2.0 * row as f64 + 1.0) {
            None => ' ',
            Some((
                Arc {
                    owner, to: None, ..
                },
                _,
            )) => self.letters[*owner],
            Some((Arc { to: Some(to), .. }, _)) => self.letters[*to].to_ascii_uppercase(),
        }
    }

    /// A row of the ring, with the text in its middle.
    fn row(&self, row: usize) -> String {
        let middle = self.middle();
        let first = self.width / 4 - middle.len().div_ceil(2);
        let said = row.checked_sub(first).and_then(|line| middle.get(line));
        let text: Vec<char> = said.map(|text| text.chars().collect()).unwrap_or_default();
        let begin = (self.width - text.len().min(self.width)) / 2;
        let cell = |x: usize| match x.checked_sub(begin).and_then(|at| text.get(at)) {
            Some(&character) => (String::new(), character),
            None if self.colours => self.painted(x, row),
            None => (String::new(), self.lettered(x, row)),
        };
        let (mut line, mut style) = (String::new(), String::new());
        let end = (String::new(), ' ');
        for (next, character) in (0..self.width).map(cell).chain([end]) {
            if next != style {
                line += if style.is_empty() { "" } else { PLAIN };
                line += &next;
                style = next;
            }
            line.push(character);
        }
        line
    }

    /// The text in the hole, as far as it has room.
    fn middle(&self) -> Vec<String> {
        let mut lines = vec![format!("{} slots", grouped(self.ring.slots.into()))];
        if let Some(to_move) = self.ring.to_move {
            lines.push(format!("{} to move", grouped(to_move.into())));
            lines.push(format!(
                "{} migrating",
                grouped(self.ring.migrating().into())
            ));
        }
        let room = (HOLE * self.width as f64) as usize;
        lines.retain(|line| line.len() + 2 < room);
        lines
    }

    /// The text next to the ring: the name of each shard, and its share.
    fn legend(&self) -> Vec<String> {
        let widest = self.ring.shards.iter().map(|shard| shard.id.as_str().len());
        let widest = widest.max().unwrap_or_default();
        let shards = self.ring.shards.iter().zip(&self.letters).enumerate();
        let line = |(index, (shard, letter)): (usize, (&super::Sector, &char))| {
            let key = match self.colours {
                true => format!("\x1b[38;5;{}m██{PLAIN}", colour(index).ansi),
                false => letter.to_string(),
            };
            let now = percent(self.ring.share(shard.slots));
            let line = format!("{key}  {:widest$}  {now:>7}", shard.id);
            match shard.after {
                Some(after) if after != shard.slots => {
                    format!("{line} → {}", percent(self.ring.share(after)))
                }
                _ => line,
            }
        };
        let mut lines: Vec<_> = shards.map(line).collect();
        if self.ring.migrating() > 0 {
            let key = if self.colours { "striped" } else { "capital" };
            lines.push(format!("{key}: on its way to that shard"));
        }
        lines
    }
}

impl fmt::Display for Terminal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, mut legend) = (self.width / 2, self.legend());
        if legend.len() > rows {
            let more = legend.len() - rows + 1;
            legend.truncate(rows - 1);
            legend.push(format!("and {more} more, below"));
        }
        let first = (rows - legend.len()) / 2;
        for row in 0..rows {
            let beside = row.checked_sub(first).and_then(|line| legend.get(line));
            let beside = beside
                .map(|line| format!("{GAP}{line}"))
                .unwrap_or_default();
            writeln!(out, "{}", format!("{}{beside}", self.row(row)).trim_end())?;
        }
        Ok(())
    }
}

/// A letter for each shard: the first of its id that is not another's, or else the next of the alphabet.
fn letters(ring: &Ring) -> Vec<char> {
    let mut free: BTreeSet<char> = ('a'..='z').collect();
    let mut choose = |shard: &super::Sector| {
        let own = shard
            .id
            .as_str()
            .chars()
            .find(|letter| free.contains(letter));
        let letter = own.or_else(|| free.first().copied()).unwrap_or(NO_LETTER);
        free.remove(&letter);
        letter
    };
    ring.shards.iter().map(&mut choose).collect()
}
