use ringfence_client::{ShardId, Weight};
use ringfence_coordinator::{
    ids::{ClientId, Life},
    topology::{Blueprint, Constants, Founder, Home, Namespaces, Round, shard_id},
};
use ringfence_ring::SlotCount;

use super::{terminal::PLAIN, *};

/// Shards with so many of 16,384 slots.
fn resting(shards: &[(&str, u32)]) -> Ring {
    let sector = |&(id, slots): &(&str, u32)| Sector {
        id: ShardId::new(id).unwrap(),
        slots,
        after: None,
    };
    let shards: Vec<_> = shards.iter().map(sector).collect();
    Ring {
        slots: 16_384,
        arcs: arcs(&shards, &[]),
        shards,
        to_move: None,
    }
}

/// Three shards, and a fourth to which `in_flight` slots are on their way.
fn resized(in_flight: usize) -> Ring {
    let founder = |index| Founder {
        id: shard_id(index),
        address: format!("memory:{index}"),
        life: Life::new(format!("life-{index}")),
        weight: Weight::ONE,
        zone: None,
    };
    let unix = std::time::Duration::from_secs(1_735_689_700);
    let founded = Topology::found(Blueprint {
        id: 7,
        engine: ClientId(1),
        unix,
        after: Default::default(),
        constants: Constants::default(),
        slots: SlotCount::DEFAULT,
        namespaces: Namespaces::default(),
        home: Home {
            address: "memory:0".into(),
            life: Life::new("life-0"),
        },
        founders: (0..3).map(founder).collect(),
    });
    let change = ringfence_coordinator::topology::Change {
        add: vec![founder(3)],
        ..Default::default()
    };
    let begun = founded.unwrap().begin(change, unix).unwrap();
    let round = Round {
        slots_in_flight: in_flight,
        ..Round::default()
    };
    Ring::of(&begun.turn(&round, unix).unwrap().unwrap()).unwrap()
}

fn lines(ring: &Ring, width: usize) -> Vec<String> {
    let text = Terminal::new(ring, width, false).to_string();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn in_letters_an_arc_is_a_share() {
    let ring = resting(&[("a", 8_192), ("b", 4_096), ("eu_west_1", 4_096)]);
    assert_eq!(
        lines(&ring, 20),
        [
            "      eeeeaaaa",
            "   eeeeeeeaaaaaaa",
            " eeeeee      aaaaaa",
            "eeeee          aaaaa   a  a           50.0 %",
            "eeee            aaaa   b  b           25.0 %",
            "bbbb            aaaa   e  eu_west_1   25.0 %",
            "bbbbb          aaaaa",
            " bbbbbb      aaaaaa",
            "   bbbbbbbaaaaaaa",
            "      bbbbaaaa",
        ]
    );
}

#[test]
fn migrating_slots_are_a_capital_letter_however_few_they_are() {
    let ring = resized(3);
    assert_eq!((ring.migrating(), ring.to_move), (3, Some(4_096)));
    let text = lines(&ring, 40).join("\n");
    assert!(
        text.contains('D') && !text.contains(['A', 'B', 'C']),
        "{text}"
    );
    for said in [
        "16,384 slots",
        "4,096 to move",
        "3 migrating",
        "d    0.0 % → 25.0 %",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours: {text}");
}

#[test]
fn in_colour_migrating_slots_have_the_colours_of_both_shards() {
    let ring = resized(1_024);
    let text = Terminal::new(&ring, 40, true).to_string();
    let (from, to) = (colour(0).ansi, colour(3).ansi);
    assert!(text.contains(&format!("38;5;{from};48;5;{to}m")), "{text}");
    assert!(
        text.lines().all(|line| line.ends_with(|end| end != ' ')),
        "{text}"
    );
    let begun = text.matches("\x1b[38").count();
    assert!(
        begun >= text.matches(PLAIN).count(),
        "none is ended twice: {text}"
    );
    assert!(
        text.lines()
            .all(|line| !line.contains("\x1b[38") || line.contains(PLAIN))
    );
}

#[test]
fn every_shard_has_a_letter_of_its_own_while_there_are_letters() {
    let shards: Vec<_> = (0..30).map(shard_id).collect();
    let shares: Vec<_> = shards.iter().map(|id| (id.as_str(), 500)).collect();
    let text = lines(&resting(&shares), 100).join("\n");
    for letter in 'a'..='z' {
        assert!(text.contains(letter), "{letter}: {text}");
    }
    assert!(text.contains('?') && text.contains("?  aa"), "{text}");
    let few = lines(&resting(&shares), 20);
    assert!(
        few.last().unwrap().ends_with("and 21 more, below"),
        "{few:?}"
    );
}

#[test]
fn the_svg_is_well_formed_and_needs_no_other_file() {
    for ring in [resized(1_024), resized(3), resting(&[("a", 16_384)])] {
        let text = svg(&ring, "Ring of topology 7");
        assert!(!text.contains("NaN") && !text.contains("<script"), "{text}");
        let links = text.matches("://").count() + text.matches("href").count();
        assert_eq!(links, 1, "its name space alone: {text}");
        assert_eq!(open_elements(&text), Vec::<String>::new());
        for shard in &ring.shards {
            assert!(text.contains(&format!(">{}</text>", shard.id)), "{text}");
        }
    }
    let text = svg(&resized(1_024), "Ring");
    for pair in ["a → d", "b → d", "c → d"] {
        assert!(text.contains(&format!(">{pair}</text>")), "{pair}: {text}");
    }
}

/// The elements of `text` that are not closed, or not in the right order.
fn open_elements(text: &str) -> Vec<String> {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop().as_deref(), Some(name), "{text}"),
            (None, true) => {}
            (None, false) => open.push(tag.split(' ').next().unwrap().to_owned()),
        }
    }
    open
}
