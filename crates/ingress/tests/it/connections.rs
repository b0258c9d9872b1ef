//! Stories of connections: who comes, who is heard, who makes room.

use servo_ingress::{Arrived, Bounds, Connections, Place};

const BOUNDS: Bounds = Bounds { places: 4, fresh: 2, beyond: 2 };

/// The connections that are still open, by name.
#[derive(Default)]
struct Story {
    open: Vec<(char, Place<char>)>,
    told: String,
}

impl Story {
    fn place(&self, name: char) -> &Place<char> {
        &self.open.iter().find(|(other, _)| *other == name).unwrap().1
    }
}

/// Plays a story: `+a` comes, `a(` asks, `a)` is answered, `-a` goes. Says who made room for whom (`a<b`), who is beyond (`b!`) and
/// who is not taken in (`b?`).
fn played(bounds: Bounds, acts: &str) -> (String, usize) {
    let connections = Connections::new(bounds);
    let mut story = Story::default();
    for act in acts.split_whitespace() {
        let letters: Vec<char> = act.chars().collect();
        match letters[..] {
            ['+', name] => match connections.arrive(name) {
                None => story.told.push_str(&format!("{name}? ")),
                Some(Arrived { place, ended }) => {
                    if place.is_beyond() {
                        story.told.push_str(&format!("{name}! "));
                    }
                    if let Some(ended) = ended {
                        story.told.push_str(&format!("{ended}<{name} "));
                    }
                    story.open.push((name, place));
                }
            },
            ['-', name] => story.open.retain(|(other, _)| *other != name),
            [name, '('] => story.place(name).begin(),
            [name, ')'] => story.place(name).end(),
            _ => panic!("{act}"),
        }
    }
    (story.told.trim_end().to_owned(), connections.taken())
}

#[test]
fn who_makes_room_for_whom() {
    for (name, acts, told, taken) in [
        ("there are places", "+a a( +b b(", "", 2),
        ("the oldest that never asked goes first", "+a +b +c +d", "a<c b<d", 2),
        ("one that asked is not fresh", "+a a( a) +b +c", "", 3),
        ("a fresh one before an idle one", "+a a( a) +b b( b) +c c( c) +d +e", "d<e", 4),
        ("the one that is idle for longest", "+a a( a) +b b( b) +c c( c) +d d( d) a( a) +e", "b<e", 4),
        ("never one that is busy", "+a a( +b b( +c c( +d d( d) +e", "d<e", 4),
        ("all busy", "+a a( +b b( +c c( +d d( +e", "e!", 4),
        ("a busy one with two requests", "+a a( a( a) +b b( +c c( +d d( +e", "e!", 4),
        ("both answered", "+a a( a( a) a) +b b( +c c( +d d( +e", "a<e", 4),
        ("beyond, the oldest fresh one makes room, too", "+a a( +b b( +c c( +d d( +e +f +g", "e! f! g! e<g", 4),
        ("beyond, one that was answered does", "+a a( +b b( +c c( +d d( +e e( e) +f f( +g", "e! f! g! e<g", 4),
        ("all busy, also beyond", "+a a( +b b( +c c( +d d( +e e( +f f( +g", "e! f! g?", 4),
        ("a place that comes free is a place", "+a a( +b b( +c c( +d d( -a +e", "", 4),
        ("and one beyond, too", "+a a( +b b( +c c( +d d( +e e( +f f( -e +g", "e! f! g!", 4),
        ("what made room gives nothing back when it goes", "+a +b +c -a -b +d", "a<c", 2),
        ("what made room and asks all the same", "+a +b +c a( a) -a", "a<c", 2),
        ("all gone", "+a +b b( b) +c c( -a -b -c", "", 0),
    ] {
        assert_eq!(played(BOUNDS, acts), (told.to_owned(), taken), "{name}");
    }
}

/// The attack: as many unfinished requests as anybody likes, in between one that asks at once.
#[test]
fn who_asks_at_once_is_served() {
    let connections = Connections::new(Bounds { places: 8, fresh: 4, beyond: 1 });
    let mut attack = Vec::new();
    for round in 0..1_000 {
        attack.push(connections.arrive(round).unwrap().place);
        if round % 3 == 0 {
            let honest = connections.arrive(usize::MAX).unwrap().place;
            honest.begin();
            assert!(!honest.is_beyond() && honest.was_heard());
            honest.end();
        }
        assert!(connections.taken() <= 8);
    }
    drop(attack);
    assert_eq!(connections.taken(), 0);
}
