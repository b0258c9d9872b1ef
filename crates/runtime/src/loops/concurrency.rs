//! How many invocations of one function or entrypoint run at a time on this node. Only the holder of the authority dispatches, so
//! this is also how many run at all.
//!
//! A run of an entrypoint takes its entrypoint's places, whoever has started it, and any other run the places that its function
//! has in its tenant. Where tenants share places they take turns.
//!
//! How many may is known from the runs, so the first hand-overs of a function go by nothing. From then on a place is taken
//! before a run is loaded, and no more are loaded than may run.
//!
//! Whoever is passed over because a function has all it may have is remembered, by function, until the backlog is looked at
//! again: a place that is given back is theirs, and nobody who comes later takes it from them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use servo_model::TenantId;
use servo_model::event::ExecutionStarted;

/// Functions with a limit that are remembered while none of their invocations runs.
const KNOWN_MAX: usize = 10_000;
/// What the targets of an entrypoint's dispatches begin with. Neither a function's name nor a plan's engine type holds a `|`.
const ENTRYPOINT: &str = "entrypoint|";

/// Whose places the invocations of a run take, as its dispatches say it.
pub(crate) fn target_of(start: &ExecutionStarted) -> String {
    match &start.entrypoint {
        Some(pin) => [ENTRYPOINT, &pin.id].concat(),
        None => start.function.clone(),
    }
}

/// The same, if dispatches that say this do not say it: earlier releases named the function.
pub(crate) fn target_unless(start: &ExecutionStarted, said: &str) -> Option<String> {
    let is_said = match &start.entrypoint {
        Some(pin) => said.strip_prefix(ENTRYPOINT) == Some(pin.id.as_str()),
        None => said == start.function,
    };
    (!is_said).then(|| target_of(start))
}

/// Who has places.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    /// Absent where all tenants share the places.
    tenant: Option<TenantId>,
    target: String,
}

impl Name {
    fn new(tenant: &TenantId, target: &str) -> Arc<Self> {
        let tenant = (!target.starts_with(ENTRYPOINT)).then(|| tenant.clone());
        Arc::new(Self { tenant, target: target.to_owned() })
    }
}

/// Tenants, and of each whether what was passed over is among its first dispatches: these are looked at every time.
type Tenants = BTreeMap<TenantId, bool>;

#[derive(Debug, Default)]
struct Functions {
    known: BTreeMap<Arc<Name>, Function>,
    /// Those of which somebody was passed over, while as many ran as may, and whose that was.
    passed: BTreeMap<Arc<Name>, Tenants>,
    /// Those that have turns.
    in_turns: Vec<Arc<Name>>,
}

#[derive(Debug, Default)]
struct Function {
    /// Places that are taken, and how many of these are used.
    taken: u32,
    running: u32,
    /// How many may, as far as is known from those that came: versions may differ.
    most: Most,
    /// How many of the places that were free at the last look are left for each tenant, if several want them.
    turns: Option<BTreeMap<TenantId, u32>>,
    /// Behind whom the next turn is.
    last: Option<TenantId>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Most {
    #[default]
    Unknown,
    Any,
    At(u32),
}

impl Most {
    fn and(self, most: Option<u32>) -> Self {
        match (self, most) {
            (Self::Any, _) | (_, None) => Self::Any,
            (Self::Unknown, Some(most)) => Self::At(most),
            (Self::At(known), Some(most)) => Self::At(known.max(most)),
        }
    }
}

#[derive(Debug, Default, Clone)]
pub(crate) struct Concurrency {
    functions: Arc<Mutex<Functions>>,
}

/// One invocation's place. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    concurrency: Concurrency,
    name: Arc<Name>,
    tenant: TenantId,
    used: bool,
    given_back: bool,
}

impl Concurrency {
    fn lock(&self) -> MutexGuard<'_, Functions> {
        self.functions.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// For one that waits, perhaps among the first of its tenant. `None` if as many are taken as may run.
    pub(crate) fn take(&self, tenant: &TenantId, target: &str, is_first: bool) -> Option<Place> {
        let name = Name::new(tenant, target);
        self.lock().take(&name, tenant, is_first).then(|| self.place(name, tenant))
    }

    fn place(&self, name: Arc<Name>, tenant: &TenantId) -> Place {
        Place { concurrency: self.clone(), name, tenant: tenant.clone(), used: false, given_back: false }
    }

    /// A place for a run that has not waited: `None` if one that has may want it.
    pub(crate) fn begin(&self, tenant: &TenantId, target: &str, most: Option<u32>) -> Option<Place> {
        let name = Name::new(tenant, target);
        let mut functions = self.lock();
        if functions.passed.contains_key(&name) || !functions.take(&name, tenant, false) {
            return None;
        }
        let enters = functions.enter(&name, tenant, most);
        drop(functions);
        let mut place = self.place(name, tenant);
        place.used = enters;
        // Given back if it did not enter.
        enters.then_some(place)
    }

    /// Whether another invocation is worth a try. Whoever asks for one that waits passes it over if not, and says whether it is
    /// among the first of its tenant.
    pub(crate) fn has_room(&self, tenant: &TenantId, target: &str, is_first: bool) -> bool {
        let name = Name::new(tenant, target);
        let mut functions = self.lock();
        let has_room = functions.known.get(&name).is_none_or(|known| known.has_room_for(tenant));
        if !has_room {
            functions.pass_over(&name, tenant, is_first);
        }
        has_room
    }

    /// Whether places are free that are kept for tenants who have nothing to use them for.
    pub(crate) fn has_turns_left(&self) -> bool {
        let functions = self.lock();
        functions.in_turns.iter().filter_map(|name| functions.known.get(name)).any(Function::has_turns_left)
    }

    /// Whether something waits that was not handed out, because its function has all it may have.
    pub(crate) fn passes_over(&self) -> bool {
        !self.lock().passed.is_empty()
    }

    /// The backlog is looked at from its beginning: whoever is still passed over will be so again. Of a tenant that `is_left_out`
    /// only the first dispatches are looked at, so it stays passed over. Of tenants that want the same places, those who `may_come`
    /// have turns until the next look. If this one `repeats` the last, whoever has left a turn unused has none now.
    pub(crate) fn look_again(
        &self,
        is_left_out: impl Fn(&TenantId) -> bool,
        may_come: impl Fn(&TenantId) -> bool,
        repeats: bool,
    ) {
        let mut functions = self.lock();
        let Functions { known, passed, in_turns } = &mut *functions;
        let mut earlier = BTreeMap::new();
        for name in in_turns.drain(..) {
            let turns = known.get_mut(&name).and_then(|function| function.turns.take());
            earlier.extend(turns.filter(|_| repeats).map(|turns| (name, turns)));
        }
        for (name, tenants) in passed.iter().filter(|(_, tenants)| tenants.len() > 1) {
            let Some(function) = known.get_mut(name) else { continue };
            let unused =
                |tenant: &TenantId| earlier.get(name).and_then(|turns| turns.get(tenant)).is_some_and(|left| *left > 0);
            let is_met = |tenant: &TenantId, is_first: bool| is_first || !is_left_out(tenant);
            let comes = |tenant: &TenantId, is_first| is_met(tenant, is_first) && !unused(tenant) && may_come(tenant);
            if function.give_turns(tenants, comes) {
                in_turns.push(name.clone());
            }
        }
        passed.retain(|_, tenants| {
            tenants.retain(|tenant, is_first| {
                *is_first = false;
                is_left_out(tenant)
            });
            !tenants.is_empty()
        });
    }
}

impl Functions {
    fn pass_over(&mut self, name: &Arc<Name>, tenant: &TenantId, is_first: bool) {
        let tenants = self.passed.entry(name.clone()).or_default();
        match tenants.get_mut(tenant) {
            Some(known) => *known |= is_first,
            None => _ = tenants.insert(tenant.clone(), is_first),
        }
    }

    fn take(&mut self, name: &Arc<Name>, tenant: &TenantId, is_first: bool) -> bool {
        let known = match self.known.get_mut(name) {
            Some(known) => known,
            None => self.known.entry(name.clone()).or_default(),
        };
        if !known.has_room_for(tenant) {
            self.pass_over(name, tenant, is_first);
            return false;
        }
        known.taken += 1;
        if let Some(left) = known.turns.as_mut().and_then(|turns| turns.get_mut(tenant)) {
            *left = left.saturating_sub(1);
        }
        true
    }

    /// For one whose place is taken.
    fn enter(&mut self, name: &Arc<Name>, tenant: &TenantId, most: Option<u32>) -> bool {
        let Some(known) = self.known.get_mut(name) else { return false };
        known.most = known.most.and(most);
        let enters = most.is_none_or(|most| known.running < most);
        if enters {
            known.running += 1;
        } else if known.running > 0 {
            // With nobody running there is nobody who would give a place back.
            self.pass_over(name, tenant, false);
        }
        enters
    }

    fn give_back(&mut self, name: &Arc<Name>, used: bool) {
        let remembered = self.known.len() <= KNOWN_MAX;
        let Some(known) = self.known.get_mut(name) else { return };
        known.taken = known.taken.saturating_sub(1);
        known.running = known.running.saturating_sub(u32::from(used));
        // At zero nothing would ever come again that could say otherwise.
        let limited = matches!(known.most, Most::At(most) if most > 0);
        if known.taken == 0 && !(limited && remembered) {
            self.known.remove(name);
        }
    }
}

impl Function {
    fn has_room_for(&self, tenant: &TenantId) -> bool {
        let is_its_turn = |turns: &BTreeMap<TenantId, u32>| turns.get(tenant).is_some_and(|left| *left > 0);
        match self.most {
            Most::At(most) => self.taken < most && self.turns.as_ref().is_none_or(is_its_turn),
            Most::Unknown | Most::Any => true,
        }
    }

    fn has_turns_left(&self) -> bool {
        let is_free = matches!(self.most, Most::At(most) if self.taken < most);
        is_free && self.turns.iter().flat_map(BTreeMap::values).any(|left| *left > 0)
    }

    /// Shares what is free among those that want it, one by one from the next on. False if there is nothing to share.
    fn give_turns(&mut self, tenants: &Tenants, comes: impl Fn(&TenantId, bool) -> bool) -> bool {
        let Most::At(most) = self.most else { return false };
        let free = most.saturating_sub(self.taken);
        let behind = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let first = tenants.range::<TenantId, _>((behind, Bound::Unbounded));
        // Those up to the last one, who are all of them if there is none.
        let rest = self.last.as_ref().map(|last| tenants.range::<TenantId, _>(..=last));
        let all = first.chain(rest.into_iter().flatten());
        let order: Vec<&TenantId> =
            all.filter(|(tenant, is_first)| comes(tenant, **is_first)).map(|(tenant, _)| tenant).collect();
        let count = u32::try_from(order.len()).unwrap_or(u32::MAX);
        if free == 0 || count < 2 {
            return false;
        }
        let (each, more) = (free / count, free % count);
        let turn = |number: u32| each + u32::from(number < more);
        let turns = (0..).zip(&order).map(|(number, tenant)| (TenantId::clone(tenant), turn(number))).collect();
        let last = (0..).zip(&order).filter(|(number, _)| *number < more).last();
        if let Some((_, last)) = last {
            self.last = Some(TenantId::clone(last));
        }
        self.turns = Some(turns);
        true
    }
}

impl Place {
    /// Says how many may run by the run's own version. False if as many do.
    pub(crate) fn enter(&mut self, most: Option<u32>) -> bool {
        self.used = self.concurrency.lock().enter(&self.name, &self.tenant, most);
        self.used
    }

    /// Gives it back. Says whether somebody waits for it.
    pub(crate) fn leave(mut self) -> bool {
        self.given_back = true;
        let mut functions = self.concurrency.lock();
        functions.give_back(&self.name, self.used);
        // Behind that: whoever is passed over from then on has seen it.
        functions.passed.contains_key(&self.name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.given_back {
            self.concurrency.lock().give_back(&self.name, self.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> TenantId {
        TenantId::parse("acme").unwrap()
    }

    /// A function with a limit takes no more places than it may use, once the limit is known.
    #[test]
    fn places_are_taken_before_a_run_is_loaded() {
        let concurrency = Concurrency::default();
        let take = || concurrency.take(&acme(), "f", true);
        let mut first: Vec<_> = (0..3).map(|_| take().unwrap()).collect();
        let entered: Vec<_> = first.iter_mut().map(|place| place.enter(Some(2))).collect();
        assert_eq!(entered, [true, true, false], "nothing was known of it before");
        first.pop();
        assert!(take().is_none(), "two run");
        first.pop();
        let second = take().unwrap();
        assert!(take().is_none() && !concurrency.has_room(&acme(), "f", true), "one runs, one is being loaded");
        drop((first, second));
        let held: Vec<_> = (0..3).map_while(|_| take()).collect();
        assert_eq!(held.len(), 2, "remembered while none runs");
    }

    /// Versions may differ: the place is taken by the largest limit, and entered by the run's own.
    #[test]
    fn a_version_without_a_limit_goes_by_none() {
        let concurrency = Concurrency::default();
        let mut limited = concurrency.take(&acme(), "f", true).unwrap();
        assert!(limited.enter(Some(1)));
        assert!(concurrency.take(&acme(), "f", true).is_none());
        assert!(concurrency.take(&acme(), "g", true).is_some_and(|mut other| other.enter(None)));
        drop(limited);
        let mut places: Vec<_> = (0..1).filter_map(|_| concurrency.take(&acme(), "f", true)).collect();
        assert!(places[0].enter(None));
        let mut late = concurrency.take(&acme(), "f", true).unwrap();
        assert!(!late.enter(Some(1)), "its own version allows one, and one runs");
    }

    #[test]
    fn nothing_is_kept_of_a_function_without_a_limit() {
        let concurrency = Concurrency::default();
        for most in [None, Some(0)] {
            let mut place = concurrency.take(&acme(), "f", true).unwrap();
            assert_eq!(place.enter(most), most.is_none());
            drop(place);
            assert!(concurrency.lock().known.is_empty() && concurrency.lock().passed.is_empty());
        }
    }

    /// Whoever comes later waits behind one that was passed over, until the backlog is looked at again.
    #[test]
    fn a_place_that_somebody_waits_for_is_not_taken_by_one_that_comes_later() {
        let concurrency = Concurrency::default();
        let begin = || concurrency.begin(&acme(), "f", Some(1));
        let first = begin().unwrap();
        assert!(begin().is_none(), "one runs");
        assert!(first.leave(), "one waits for it");
        assert!(begin().is_none(), "it is the other's");
        concurrency.look_again(|_| false, |_| true, false);
        let second = begin().unwrap();
        assert!(!concurrency.has_room(&acme(), "f", true), "one that waits is passed over");
        concurrency.look_again(|tenant| *tenant == acme(), |_| true, false);
        assert!(second.leave(), "that look has left it out");
        concurrency.look_again(|_| false, |_| true, false);
        assert!(!begin().unwrap().leave());
    }

    /// SR-030: an entrypoint's places are one for all tenants, a function's are each tenant's own.
    #[test]
    fn tenants_share_the_places_of_an_entrypoint() {
        let concurrency = Concurrency::default();
        let begin = |tenant: &str, target| concurrency.begin(&TenantId::parse(tenant).unwrap(), target, Some(1));
        let _functions = [begin("a", "ep_1").unwrap(), begin("b", "ep_1").unwrap()];
        let first = begin("a", "entrypoint|ep_1").unwrap();
        assert!(begin("b", "entrypoint|ep_1").is_none() && begin("b", "entrypoint|ep_2").is_some());
        assert!(first.leave(), "another tenant waits for it");
    }

    /// Who gets the places that are free at each look, if all of the tenants want each and the first ask first.
    fn served(most: u32, free: u32, may_come: impl Fn(&TenantId) -> bool) -> Vec<String> {
        let concurrency = Concurrency::default();
        let tenants = ["a", "b", "c"].map(|tenant| TenantId::parse(tenant).unwrap());
        let take = |tenant: &TenantId| {
            let mut place = concurrency.take(tenant, "entrypoint|ep_1", true)?;
            place.enter(Some(most)).then_some(place)
        };
        let mut places: Vec<_> = (0..most).map(|_| take(&tenants[0]).unwrap()).collect();
        let mut served = Vec::new();
        for _ in 0..4 {
            assert!(tenants.iter().all(|tenant| take(tenant).is_none()), "as many run as may");
            assert!(places.drain(..free as usize).all(Place::leave));
            concurrency.look_again(|_| false, &may_come, false);
            for tenant in tenants.iter().filter(|tenant| may_come(tenant)) {
                while let Some(place) = take(tenant) {
                    served.push(tenant.to_string());
                    places.push(place);
                }
            }
        }
        served
    }

    #[test]
    fn tenants_that_want_the_same_places_take_turns() {
        assert_eq!(served(1, 1, |_| true), ["a", "b", "c", "a"]);
        assert_eq!(served(5, 4, |_| true).len(), 16);
        let served_of = |tenant: &str| served(5, 4, |_| true).iter().filter(|served| *served == tenant).count();
        assert_eq!([served_of("a"), served_of("b"), served_of("c")], [6, 5, 5]);
        // One who cannot come keeps nobody waiting.
        assert_eq!(served(1, 1, |tenant| tenant.as_str() != "b"), ["a", "c", "a", "c"]);
        assert_eq!(served(1, 1, |tenant| tenant.as_str() == "b"), ["b", "b", "b", "b"]);
    }

    const SHARED: &str = "entrypoint|ep_1";

    /// All places of a shared entrypoint, taken by a tenant of its own.
    fn full(concurrency: &Concurrency, most: u32) -> Vec<Place> {
        let owner = TenantId::parse("owner").unwrap();
        (0..most).map(|_| concurrency.begin(&owner, SHARED, Some(most)).unwrap()).collect()
    }

    /// Whose backlog is so long that it rests still has its first dispatches looked at, and takes turns by these.
    #[test]
    fn tenants_that_rest_take_turns_by_their_first_dispatches() {
        let tenants = ["flood", "quiet"].map(|tenant| TenantId::parse(tenant).unwrap());
        for rests in [|tenant: &TenantId| tenant.as_str() == "flood", |_: &TenantId| true] {
            let concurrency = Concurrency::default();
            let mut place = full(&concurrency, 1).pop();
            let mut served = Vec::new();
            assert!(tenants.iter().all(|tenant| !concurrency.has_room(tenant, SHARED, true)));
            for _ in 0..6 {
                assert!(place.take().is_some_and(Place::leave));
                concurrency.look_again(rests, |_| true, false);
                // The first in the alphabet asks first, and whoever asks in vain is met again.
                for tenant in &tenants {
                    // Two of them are at hand, of which one finds a place.
                    for _ in 0..if concurrency.has_room(tenant, SHARED, true) { 2 } else { 0 } {
                        if let Some(mut taken) = concurrency.take(tenant, SHARED, true) {
                            assert!(taken.enter(Some(1)));
                            served.push(tenant.as_str());
                            place = Some(taken);
                        }
                    }
                }
            }
            assert_eq!(served, ["flood", "quiet", "flood", "quiet", "flood", "quiet"]);
        }
    }

    /// What rests and has nothing of it among its first dispatches cannot come, so nothing is kept for it.
    #[test]
    fn nothing_is_kept_for_who_rests_with_other_work() {
        let concurrency = Concurrency::default();
        let [flood, quiet] = ["flood", "quiet"].map(|tenant| TenantId::parse(tenant).unwrap());
        let places = full(&concurrency, 2);
        assert!(!concurrency.has_room(&flood, SHARED, false) && !concurrency.has_room(&quiet, SHARED, true));
        drop(places);
        concurrency.look_again(|tenant| *tenant == flood, |_| true, false);
        let both = [concurrency.take(&quiet, SHARED, true), concurrency.take(&quiet, SHARED, true)];
        assert!(both.iter().all(Option::is_some));
    }

    /// Who has a turn and nothing to use it for leaves it to the others, in a second look.
    #[test]
    fn turns_that_nobody_uses_are_given_to_others() {
        let concurrency = Concurrency::default();
        let [few, many] = ["few", "many"].map(|tenant| TenantId::parse(tenant).unwrap());
        let places = full(&concurrency, 10);
        for tenant in [&few, &many] {
            assert!(!concurrency.has_room(tenant, SHARED, true));
        }
        drop(places);
        concurrency.look_again(|_| false, |_| true, false);
        let mut taken: Vec<_> = concurrency.take(&few, SHARED, true).into_iter().collect();
        taken.extend(std::iter::from_fn(|| concurrency.take(&many, SHARED, true)));
        assert_eq!((taken.len(), concurrency.has_turns_left()), (6, true));
        assert!(!concurrency.has_room(&many, SHARED, true));
        concurrency.look_again(|_| false, |_| true, true);
        taken.extend(std::iter::from_fn(|| concurrency.take(&many, SHARED, true)));
        assert_eq!((taken.len(), concurrency.has_turns_left()), (10, false));
    }
}
