//! The ring as a picture to be looked at elsewhere: one file, which needs no other.

use std::{
    collections::BTreeSet,
    f64::consts::TAU,
    fmt::{self, Display, Write},
};

use super::{Arc, Ring, colour};
use crate::table::{grouped, percent};

/// The middle of the ring, from the top and from the left.
const MIDDLE: f64 = 210.0;
/// The ring of shares as they are, from the middle.
const NOW: (f64, f64) = (118.0, 180.0);
/// The ring of shares as they will be.
const AFTER: (f64, f64) = (98.0, 110.0);
/// Where the legend begins, from the left.
const LEGEND: f64 = 430.0;
/// A line of the legend.
const LINE: f64 = 28.0;
/// Half of the gap between two arcs.
const GAP: f64 = 1.0;
/// What a name takes, and each letter of it.
const NAME: (f64, f64) = (8.0, 9.0);
/// The minimum width of migrating slots, as a part of the circle.
const SEEN_FROM: f64 = 0.008;

const STYLE: &str = "\
text { font: 15px system-ui, sans-serif; fill: #1f2933 }
.small { font-size: 13px; fill: #52606d }
.head { font-size: 13px; fill: #52606d; letter-spacing: .04em }
.big { font-size: 30px; font-weight: 600 }
.name { font-weight: 600; text-anchor: middle; dominant-baseline: central }
.right { text-anchor: end; font-variant-numeric: tabular-nums }
.middle { text-anchor: middle }
.id { font-weight: 600 }";

/// `ring` as an SVG document. `title` is what it shows, without characters that XML has a use for.
pub(in crate::ring) fn svg(ring: &Ring, title: &str) -> String {
    let mut out = String::new();
    draw(ring, title, &mut out).expect("writing to a String cannot fail");
    out
}

fn draw(ring: &Ring, title: &str, out: &mut String) -> fmt::Result {
    let legend = Legend::new(ring);
    let height = (2.0 * MIDDLE).max(legend.height());
    let width = legend.right() + 30.0;
    writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>{title}</title>
<style>
{STYLE}
</style>"##
    )?;
    patterns(ring, out)?;
    writeln!(
        out,
        r##"<rect width="{width}" height="{height}" rx="12" fill="#fff"/>"##
    )?;
    for (arc, turn) in ring.arcs.iter().zip(ring.turns(SEEN_FROM)) {
        sector(NOW, turn, &fill(arc), &told(ring, arc), out)?;
    }
    after(ring, out)?;
    names(ring, out)?;
    middle(ring, out)?;
    legend.draw(out, (height - legend.height()) / 2.0)?;
    writeln!(out, "</svg>")
}

/// Stripes of the colours of both shards, for each pair that slots go between.
fn patterns(ring: &Ring, out: &mut String) -> fmt::Result {
    let pairs = ring
        .arcs
        .iter()
        .filter_map(|arc| Some((arc.owner, arc.to?)));
    writeln!(out, "<defs>")?;
    for (from, to) in pairs.collect::<BTreeSet<_>>() {
        let (before, after) = (colour(from).hex, colour(to).hex);
        writeln!(
            out,
            r##"<pattern id="m{from}-{to}" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" fill="{before}"/><rect width="4" height="8" fill="{after}"/><path d="M0 0V8M4 0V8" stroke="#fff"/></pattern>"##
        )?;
    }
    writeln!(out, "</defs>")
}

fn fill(arc: &Arc) -> String {
    match arc.to {
        None => colour(arc.owner).hex.into(),
        Some(to) => format!("url(#m{}-{to})", arc.owner),
    }
}

/// The description of an arc, for a pointer or a screen reader.
fn told(ring: &Ring, arc: &Arc) -> String {
    let owner = &ring.shards[arc.owner].id;
    let slots = grouped(arc.slots.into());
    let share = percent(ring.share(arc.slots));
    match arc.to {
        None => format!("{owner}: {slots} slots, {share}"),
        Some(to) => format!("{owner} → {}: {slots} migrating slots", ring.shards[to].id),
    }
}

/// A part of a ring.
fn sector(
    (inner, outer): (f64, f64),
    (begin, end): (f64, f64),
    fill: &str,
    told: &str,
    out: &mut String,
) -> fmt::Result {
    // A gap of the same width all along; where an arc is too narrow for it, none.
    let gap = |radius: f64| (GAP / radius / TAU).min((end - begin) / 4.0);
    let whole = end - begin > 0.9999;
    let at = |turn: f64, radius: f64| Point::at(turn, radius);
    let large = i32::from(end - begin > 0.5);
    let path = if whole {
        let ring = |radius: f64| {
            let (top, bottom) = (at(0.0, radius), at(0.5, radius));
            format!("M{top}A{radius} {radius} 0 1 1 {bottom}A{radius} {radius} 0 1 1 {top}Z")
        };
        format!("{}{}", ring(outer), ring(inner))
    } else {
        let (far, near) = (gap(outer), gap(inner));
        format!(
            "M{}A{outer} {outer} 0 {large} 1 {}L{}A{inner} {inner} 0 {large} 0 {}Z",
            at(begin + far, outer),
            at(end - far, outer),
            at(end - near, inner),
            at(begin + near, inner),
        )
    };
    writeln!(
        out,
        r##"<path fill-rule="evenodd" fill="{fill}" d="{path}"><title>{told}</title></path>"##
    )
}

/// The shares that the resize under way leads to, as a thin ring inside.
fn after(ring: &Ring, out: &mut String) -> fmt::Result {
    let mut end = 0.0;
    for (index, shard) in ring.shards.iter().enumerate() {
        let share = ring.share(shard.after.unwrap_or(0));
        if share > 0.0 {
            let told = format!("{} after: {}", shard.id, percent(share));
            sector(AFTER, (end, end + share), colour(index).hex, &told, out)?;
        }
        end += share;
    }
    Ok(())
}

/// Each shard's name, in the middle of what it has at rest.
fn names(ring: &Ring, out: &mut String) -> fmt::Result {
    for (arc, (begin, end)) in ring.arcs.iter().zip(ring.turns(SEEN_FROM)) {
        let id = ring.shards[arc.owner].id.as_str();
        let middle = (NOW.0 + NOW.1) / 2.0;
        let room = ((end - begin) * TAU * middle).min(NOW.1 - NOW.0);
        if arc.to.is_some() || room < NAME.0 + NAME.1 * id.len() as f64 {
            continue;
        }
        let at = Point::at((begin + end) / 2.0, middle);
        let fill = if colour(arc.owner).dark {
            "#fff"
        } else {
            "#1f2933"
        };
        writeln!(
            out,
            r##"<text class="name" x="{:.2}" y="{:.2}" style="fill:{fill}">{id}</text>"##,
            at.x, at.y
        )?;
    }
    Ok(())
}

fn middle(ring: &Ring, out: &mut String) -> fmt::Result {
    let slots = grouped(ring.slots.into());
    let mut line = |class: &str, y: f64, text: &str| {
        writeln!(
            out,
            r##"<text class="{class} middle" x="{MIDDLE}" y="{y}">{text}</text>"##
        )
    };
    match ring.to_move {
        None => {
            line("big", MIDDLE + 4.0, &slots)?;
            line("small", MIDDLE + 26.0, "slots")
        }
        Some(to_move) => {
            line("big", MIDDLE - 4.0, &grouped(to_move.into()))?;
            line("small", MIDDLE + 18.0, &format!("of {slots} slots to move"))?;
            let migrating = grouped(ring.migrating().into());
            line("small", MIDDLE + 36.0, &format!("{migrating} migrating"))
        }
    }
}

/// Which shard is which, in columns.
struct Legend<'a> {
    ring: &'a Ring,
    /// Right edges of the columns: slots, share, share after.
    columns: [f64; 3],
    pairs: Vec<&'a Arc>,
}

impl<'a> Legend<'a> {
    fn new(ring: &'a Ring) -> Self {
        let widest = ring.shards.iter().map(|shard| shard.id.as_str().len());
        let widest = widest.max().unwrap_or_default().max(5);
        let slots = LEGEND + 30.0 + 9.5 * widest as f64 + 70.0;
        Self {
            ring,
            columns: [slots, slots + 75.0, slots + 150.0],
            pairs: ring.arcs.iter().filter(|arc| arc.to.is_some()).collect(),
        }
    }

    fn height(&self) -> f64 {
        let migrations = if self.pairs.is_empty() {
            0
        } else {
            self.pairs.len() + 2
        };
        (1 + self.ring.shards.len() + migrations) as f64 * LINE + 2.0 * LINE
    }

    fn right(&self) -> f64 {
        self.columns[if self.ring.to_move.is_some() { 2 } else { 1 }]
    }

    fn draw(&self, out: &mut String, top: f64) -> fmt::Result {
        let mut y = top + 1.5 * LINE;
        self.row(out, y, ("head", ""), ["SHARD", "SLOTS", "SHARE", "AFTER"])?;
        for (index, shard) in self.ring.shards.iter().enumerate() {
            y += LINE;
            let after = shard.after.map(|after| percent(self.ring.share(after)));
            let slots = grouped(shard.slots.into());
            let share = percent(self.ring.share(shard.slots));
            let cells = [
                shard.id.as_str(),
                &slots,
                &share,
                &after.unwrap_or_default(),
            ];
            self.row(out, y, ("id", colour(index).hex), cells)?;
        }
        if self.pairs.is_empty() {
            return Ok(());
        }
        y += 2.0 * LINE;
        self.row(out, y, ("head", ""), ["MIGRATING", "SLOTS", "", ""])?;
        for arc in &self.pairs {
            y += LINE;
            let to = arc.to.map_or("", |to| self.ring.shards[to].id.as_str());
            let pair = format!("{} → {to}", self.ring.shards[arc.owner].id);
            let slots = grouped(arc.slots.into());
            self.row(out, y, ("id", &fill(arc)), [&pair, &slots, "", ""])?;
        }
        Ok(())
    }

    /// A line of it: a patch of `fill`, if that is any, and what the columns say.
    fn row(
        &self,
        out: &mut String,
        y: f64,
        (class, fill): (&str, &str),
        [first, others @ ..]: [&str; 4],
    ) -> fmt::Result {
        let numbers = if class == "head" {
            "head right"
        } else {
            "right"
        };
        let indent = if fill.is_empty() { 0.0 } else { 28.0 };
        if !fill.is_empty() {
            writeln!(
                out,
                r##"<rect x="{LEGEND}" y="{}" width="18" height="18" rx="4" fill="{fill}"/>"##,
                y - 14.0
            )?;
        }
        writeln!(
            out,
            r##"<text class="{class}" x="{}" y="{y}">{first}</text>"##,
            LEGEND + indent
        )?;
        let shown = if self.ring.to_move.is_some() { 3 } else { 2 };
        let columns = others.iter().zip(self.columns).take(shown);
        for (cell, x) in columns.filter(|(cell, _)| !cell.is_empty()) {
            writeln!(
                out,
                r##"<text class="{numbers}" x="{x}" y="{y}">{cell}</text>"##
            )?;
        }
        Ok(())
    }
}

/// A place in the picture.
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// `turn` round the middle from the top, clockwise, `radius` away from it.
    fn at(turn: f64, radius: f64) -> Self {
        let (sin, cos) = (turn * TAU).sin_cos();
        Self {
            x: MIDDLE + radius * sin,
            y: MIDDLE - radius * cos,
        }
    }
}

impl Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2} {:.2}", self.x, self.y)
    }
}
