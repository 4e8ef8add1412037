//! Deductions a second against segments, drawn.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    measure::Row,
    setup::{How, Setup, Share},
};
use crate::Spread;

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 64.0;
/// Colours that the colour-blind tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// A line a kind of contender, at the greatest number of tasks: segments to the right on a scale of powers of two,
/// deductions a second upwards on one of powers of ten.
pub(crate) fn svg(rows: &[Row]) -> String {
    let tasks = rows.iter().map(|row| row.tasks).max().unwrap_or_default();
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let drawn = |row: &&Row| {
        let Setup { how, share, .. } = row.setup;
        (row.tasks, row.processes) == (tasks, 1)
            && share == Share::Whole
            && !matches!(how, How::CounterAgain | How::HandedOn)
    };
    for row in rows.iter().filter(drawn) {
        let setup = row.setup;
        let name = match setup.how {
            // One curve, from one lock to many.
            How::Lock | How::HandedOn | How::Segments => "locks".to_owned(),
            how if setup.shards == 1 => format!("{}, {}", how.name(), setup.log.name()),
            how => format!("{} over {}, {}", how.name(), setup.shards, setup.log.name()),
        };
        let per_s = Spread::of(row.deductions_per_s.iter().copied()).median;
        let point = (f64::from(setup.segments).log2(), per_s.max(1.0).log10());
        lines.entry(name).or_default().push(point);
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = axes(&mut svg, tasks);
    for (index, (name, points)) in lines.iter_mut().enumerate() {
        points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let _ = line(&mut svg, index, name, points);
    }
    svg + "</svg>\n"
}

fn x(segments_log2: f64) -> f64 {
    MARGIN + segments_log2 / 4.0 * (WIDTH - 6.0 * MARGIN)
}

fn y(per_s_log10: f64) -> f64 {
    HEIGHT - MARGIN - (per_s_log10 - 2.0) / 4.0 * (HEIGHT - 2.0 * MARGIN)
}

fn axes(svg: &mut String, tasks: usize) -> std::fmt::Result {
    writeln!(
        svg,
        "<text x=\"{MARGIN}\" y=\"28\" font-size=\"16\">Deductions a second on one hot account, {tasks} tasks</text>"
    )?;
    for power in 2_u32..=6 {
        let at = y(f64::from(power));
        let label = 10_u32.pow(power);
        writeln!(
            svg,
            "<path d=\"M{MARGIN} {at:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{label}</text>",
            x(4.0),
            MARGIN - 6.0,
            at + 4.0
        )?;
    }
    for segments in [1_u32, 2, 4, 8, 16] {
        writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{segments}</text>",
            x(f64::from(segments).log2()),
            HEIGHT - MARGIN + 20.0
        )?;
    }
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">segments, locks, or rows</text>",
        x(2.0),
        HEIGHT - MARGIN + 40.0
    )
}

fn line(svg: &mut String, index: usize, name: &str, points: &[(f64, f64)]) -> std::fmt::Result {
    let colour = COLOURS[index % COLOURS.len()];
    let dash = if index < COLOURS.len() {
        ""
    } else {
        " stroke-dasharray=\"4 3\""
    };
    let path: Vec<String> = points
        .iter()
        .map(|(segments, per_s)| format!("{:.1},{:.1}", x(*segments), y(*per_s)))
        .collect();
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
        path.join(" ")
    )?;
    for (segments, per_s) in points {
        let (x, y) = (x(*segments), y(*per_s));
        writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        )?;
    }
    let (left, top) = (x(4.0) + 16.0, MARGIN + 18.0 * index as f64);
    writeln!(
        svg,
        "<path d=\"M{left:.1} {top:.1}h18\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
        left + 24.0,
        top + 4.0
    )
}
