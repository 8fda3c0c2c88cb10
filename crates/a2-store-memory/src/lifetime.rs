//! What a session holds from one clear to the next.
//!
//! The heads stand in one vector in the order in which they were made, and every event knows where
//! its own begin: a head is found from its index without hashing anything, and names are hashed
//! only where an append looks for a consumer or a lane. A clear puts the whole away and begins a new
//! one; what was put away is emptied a few rows at a time.

use std::cell::Cell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};

use a2_core::{Consumer, Event, EventId, EventType, HeadRef, Index, Json, Lane, ReducerName};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::chunks::Chunks;
use crate::queue::ConsumerState;
use crate::row::{Row, States};

/// An event, and which row is its first (that of the next event when it has none).
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) event: Event,
    pub(crate) first_row: usize,
}

/// A lane with at least one row.
#[derive(Debug)]
pub(crate) struct LaneState {
    pub(crate) consumer: usize,
    pub(crate) name: Lane,
    /// The row of its head; [`NONE`](crate::row::NONE) when idle.
    pub(crate) head: usize,
    /// The last row.
    pub(crate) tail: usize,
    /// The last index completed or skipped.
    pub(crate) position: Option<Index>,
}

/// A reducer's snapshots, and how many pins name each index.
#[derive(Debug, Default)]
pub(crate) struct ReducerState {
    pub(crate) snapshots: BTreeMap<Index, Json>,
    pub(crate) pins: BTreeMap<Index, usize>,
}

impl ReducerState {
    /// One pin less names the index.
    pub(crate) fn unpin(&mut self, index: Index) {
        if let Entry::Occupied(mut pins) = self.pins.entry(index) {
            *pins.get_mut() -= 1;
            if *pins.get() == 0 {
                pins.remove();
            }
        }
    }
}

/// Where a type's events are.
#[derive(Debug)]
pub(crate) struct TypeIndex {
    name: EventType,
    indexes: Vec<Index>,
}

/// A session from one clear to the next.
#[derive(Debug, Default)]
pub(crate) struct Lifetime {
    pub(crate) clear_index: Index,
    /// From the marker on.
    pub(crate) log: Chunks<Logged>,
    /// Who owns an id: its hash, and its event's place in the log.
    ids: HashTable<(u64, usize)>,
    pub(crate) types: Vec<TypeIndex>,
    type_numbers: HashTable<usize>,
    pub(crate) rows: Chunks<Row>,
    pub(crate) states: States,
    pub(crate) consumers: Vec<ConsumerState>,
    pub(crate) consumer_numbers: HashTable<usize>,
    pub(crate) consumers_by_name: BTreeMap<Consumer, usize>,
    /// The consumers with live heads, in no order.
    pub(crate) live: Vec<usize>,
    pub(crate) lanes: Vec<LaneState>,
    pub(crate) lane_numbers: HashTable<usize>,
    pub(crate) dead: BTreeSet<HeadRef>,
    pub(crate) reducers: BTreeMap<ReducerName, ReducerState>,
    /// What each head pins.
    pub(crate) pins: BTreeMap<HeadRef, BTreeSet<(ReducerName, Index)>>,
    pub(crate) hasher: RandomState,
    /// What was looked up last is often looked up next: it is compared before anything is hashed.
    pub(crate) last_consumer: Cell<usize>,
    pub(crate) last_lane: Cell<usize>,
    pub(crate) last_row: Cell<usize>,
    last_type: usize,
}

impl Lifetime {
    /// A lifetime that begins with `marker`.
    pub(crate) fn starting_at(marker: &Event) -> Self {
        let mut life = Self { clear_index: marker.index, ..Self::default() };
        life.add_event(marker);
        life
    }

    pub(crate) fn hash(&self, text: &str) -> u64 {
        hash_of(&self.hasher, text)
    }

    /// The index of the first event that is or would be here.
    fn first_index(&self) -> u64 {
        self.clear_index.get().max(1)
    }

    pub(crate) fn head(&self) -> Index {
        // Its event says so too, but may be far away.
        match self.log.len() {
            0 => self.clear_index,
            length => self.index_at(length - 1),
        }
    }

    fn index_at(&self, place: usize) -> Index {
        Index::new(self.first_index() + place as u64).unwrap_or(Index::MAX)
    }

    /// Where an index is in the log.
    fn place(&self, index: Index) -> Option<usize> {
        usize::try_from(index.get().checked_sub(self.first_index())?).ok()
    }

    pub(crate) fn logged(&self, index: Index) -> Option<&Logged> {
        self.log.get(self.place(index)?)
    }

    /// What follows `after` in the log.
    pub(crate) fn events_after(&self, after: Index) -> impl Iterator<Item = &Event> {
        let from = self.place(after.next()).unwrap_or(0);
        self.log.iter_from(from).map(|logged| &logged.event)
    }

    pub(crate) fn owner(&self, id: &EventId) -> Option<Index> {
        if self.ids.is_empty() {
            return None;
        }
        let hash = self.hash(id.as_str());
        let is = |logged: &Logged| logged.event.id == *id;
        let owns = |&(of, place): &(u64, usize)| of == hash && self.log.get(place).is_some_and(is);
        self.ids.find(hash, owns).map(|&(_, place)| self.index_at(place))
    }

    pub(crate) fn add_event(&mut self, event: &Event) {
        let hash = self.hash(event.id.as_str());
        self.ids.insert_unique(hash, (hash, self.log.len()), |&(hash, _)| hash);
        if !event.event_type.is_clear() {
            self.add_type(&event.event_type, event.index);
        }
        self.log.push(Logged { event: event.clone(), first_row: self.rows.len() });
    }

    fn add_type(&mut self, name: &EventType, index: Index) {
        if let Some(last) = self.types.get_mut(self.last_type).filter(|last| last.name == *name) {
            last.indexes.push(index);
            return;
        }
        let hash = self.hash(name.as_str());
        if let Some(&number) = self.type_numbers.find(hash, |&n| self.types[n].name == *name) {
            self.types[number].indexes.push(index);
            self.last_type = number;
            return;
        }
        self.last_type = self.types.len();
        self.types.push(TypeIndex { name: name.clone(), indexes: vec![index] });
        let (types, hasher) = (&self.types, &self.hasher);
        let rehash = |&n: &usize| hash_of(hasher, types[n].name.as_str());
        self.type_numbers.insert_unique(hash, self.last_type, rehash);
    }

    /// The first event of this type after `after`.
    pub(crate) fn next_of_type(&self, name: &EventType, after: Index) -> Option<Index> {
        let hash = self.hash(name.as_str());
        let &number = self.type_numbers.find(hash, |&n| self.types[n].name == *name)?;
        let indexes = &self.types[number].indexes;
        indexes.get(indexes.partition_point(|index| *index <= after)).copied()
    }
}

/// The hash of one name. `Hash` would tell it apart from a name that follows; there is none.
pub(crate) fn hash_of(hasher: &RandomState, text: &str) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(text.as_bytes());
    hasher.finish()
}
