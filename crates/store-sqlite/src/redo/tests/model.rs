//! Random lives of a redo file, against a vector of bodies.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    /// A part of what is not released, of 100.
    Release(u64),
    /// The process ends, and the database has a part of what is not released, of 100.
    Reopen(u64),
    /// The process ends in an append: a bit of the record is not as it should be.
    Tear(usize, prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![8 => 0..300_usize, 1 => 300..3_000_usize];
    let step = prop_oneof![
        8 => length().prop_map(Step::Append),
        3 => (0..=100_u64).prop_map(Step::Release),
        1 => (0..=100_u64).prop_map(Step::Reopen),
        1 => (length(), any::<prop::sample::Index>()).prop_map(|(length, bit)| Step::Tear(length, bit)),
    ];
    prop::collection::vec(step, 1..120)
}

struct Life {
    dir: TempDir,
    redo: Option<Redo>,
    /// The record with number n is at n - 1.
    bodies: Vec<Vec<u8>>,
    sizes: Vec<u64>,
    released: u64,
}

impl Life {
    fn redo(&mut self) -> &mut Redo {
        self.redo.as_mut().unwrap()
    }

    fn append(&mut self, length: usize) {
        let lsn = self.bodies.len() as u64 + 1;
        let body = body(lsn, length);
        assert_eq!(self.redo().append(&body).unwrap(), lsn);
        self.bodies.push(body);
        self.sizes.push((28 + length as u64).div_ceil(8) * 8);
    }

    fn release(&mut self, part: u64) {
        self.released += (self.bodies.len() as u64 - self.released) * part / 100;
        let released = self.released;
        self.redo().release(released);
    }

    fn reopen(&mut self, part: u64) {
        self.released += (self.bodies.len() as u64 - self.released) * part / 100;
        drop(self.redo.take());
        let (redo, records) = open(&self.dir, self.released);
        self.redo = Some(redo);
        let expected = (self.released + 1..).zip(self.bodies[self.released as usize..].iter().cloned());
        assert_eq!(records, expected.map(|(lsn, body)| Record { lsn, body }).collect::<Vec<_>>());
    }

    fn tear(&mut self, length: usize, bit: prop::sample::Index) {
        self.append(length);
        let size = self.sizes.pop().unwrap();
        self.bodies.pop();
        let redo = self.redo();
        let segment = &redo.segments[redo.current.unwrap()];
        let mut record = vec![0; size as usize];
        let at = frame::RECORDS_AT + segment.record_bytes() - size;
        std::os::unix::fs::FileExt::read_exact_at(&segment.file, &mut record, at).unwrap();
        let bit = bit.index(record.len() * 8);
        record[bit / 8] ^= 1 << (bit % 8);
        std::os::unix::fs::FileExt::write_all_at(&segment.file, &record, at).unwrap();
        self.reopen(0);
    }

    fn check(&mut self) {
        let unreleased: u64 = self.sizes[self.released as usize..].iter().sum();
        let last = self.bodies.len() as u64;
        assert_eq!((self.redo().last(), self.redo().unreleased_bytes()), (last, unreleased));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_redo_file_gives_back_what_it_took(steps in steps()) {
        let dir = folder();
        let (redo, _) = open(&dir, 0);
        let mut life = Life { dir, redo: Some(redo), bodies: Vec::new(), sizes: Vec::new(), released: 0 };
        for step in steps {
            match step {
                Step::Append(length) => life.append(length),
                Step::Release(part) => life.release(part),
                Step::Reopen(part) => life.reopen(part),
                Step::Tear(length, bit) => life.tear(length, bit),
            }
            life.check();
        }
        life.reopen(0);
        life.check();
    }
}
