use proptest::{collection::vec, prelude::*};

use super::*;

/// Every frame of `stream`, fed in pieces that end at `cuts`.
fn framed(stream: &[u8], cuts: &[usize]) -> Result<Vec<Frame>, NotResp> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
    cuts.extend([0, stream.len()]);
    cuts.sort_unstable();
    let (mut framer, mut frames) = (Framer::default(), Vec::new());
    for piece in cuts.windows(2) {
        framer.feed(&stream[piece[0]..piece[1]]);
        while let Some(frame) = framer.next_frame()? {
            frames.push(frame);
        }
    }
    assert!(framer.buffer.is_empty(), "{framer:?}");
    Ok(frames)
}

fn bulk(kind: char, bytes: &[u8]) -> Vec<u8> {
    [
        format!("{kind}{}\r\n", bytes.len()).as_bytes(),
        bytes,
        b"\r\n",
    ]
    .concat()
}

fn aggregate(kind: char, count: usize, parts: &[Vec<u8>]) -> Vec<u8> {
    [format!("{kind}{count}\r\n").into_bytes(), parts.concat()].concat()
}

/// Any value that Redis may answer.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let plain = prop::sample::select(vec![
        "+OK\r\n",
        "+\r\n",
        "-ERR no\r\n",
        ":-12\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "_\r\n",
        ",1.5e3\r\n",
        ",inf\r\n",
        "#t\r\n",
        "(3492890328409238509324850943850943825024385\r\n",
        "*0\r\n",
        "$0\r\n\r\n",
    ]);
    let plain = plain.prop_map(|text| text.as_bytes().to_vec());
    let text = ("[$=!]", vec(any::<u8>(), 0..40))
        .prop_map(|(kind, bytes)| bulk(kind.chars().next().unwrap(), &bytes));
    let leaf = prop_oneof![plain, text];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let list = ("[*~>]", vec(inner.clone(), 0..4))
            .prop_map(|(kind, parts)| aggregate(kind.chars().next().unwrap(), parts.len(), &parts));
        let map = vec((inner.clone(), inner.clone()), 0..3).prop_map(|pairs| {
            let parts: Vec<_> = pairs
                .into_iter()
                .flat_map(|(key, value)| [key, value])
                .collect();
            aggregate('%', parts.len() / 2, &parts)
        });
        let attributed = (inner.clone(), inner.clone(), inner)
            .prop_map(|(key, value, of)| [aggregate('|', 1, &[key, value]), of].concat());
        prop_oneof![list, map, attributed]
    })
}

proptest! {
    #[test]
    fn frames_are_the_values_that_were_sent_however_they_arrive(
        values in vec(value(), 0..6),
        cuts in vec(any::<usize>(), 0..30),
    ) {
        let frames = framed(&values.concat(), &cuts).unwrap();
        let bytes: Vec<&[u8]> = frames.iter().map(Frame::bytes).collect();
        prop_assert_eq!(bytes, values);
    }

    #[test]
    fn a_request_has_the_words_that_were_sent(
        words in vec(vec(any::<u8>(), 0..30), 1..6),
        cuts in vec(any::<usize>(), 0..10),
    ) {
        let bulks: Vec<_> = words.iter().map(|word| bulk('$', word)).collect();
        let frames = framed(&aggregate('*', bulks.len(), &bulks), &cuts).unwrap();
        prop_assert_eq!(frames.len(), 1);
        prop_assert_eq!(frames[0].words(), words);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..60), kind in "[*$%|=!>~]") {
        let mut framer = Framer::default();
        framer.feed(kind.as_bytes());
        framer.feed(&bytes);
        while let Ok(Some(frame)) = framer.next_frame() {
            let _ = frame.words();
        }
    }
}

#[test]
fn only_pushes_answer_nothing() {
    let frames = framed(b">2\r\n+invalidate\r\n*0\r\n*1\r\n>0\r\n", &[]).unwrap();
    let pushes: Vec<bool> = frames.iter().map(Frame::is_push).collect();
    assert_eq!(pushes, [true, false]);
}

#[test]
fn invalid_resp_is_refused() {
    for stream in [
        "PING\r\n",
        "$x\r\n",
        "*-2\r\n",
        "$3\r\nabcd\r\n",
        "$?\r\n",
        "*99999999999\r\n",
    ] {
        let refused = framed(stream.as_bytes(), &[]);
        assert!(refused.is_err(), "{stream:?}: {refused:?}");
    }
}
