//! The numbers by which a case names what it checks: the model's rules and the faults seen in the
//! field. Their texts are `docs/model.md` and `docs/faults.md`; `cargo xtask tidy` compares.

use std::fmt;

macro_rules! rule_ids {
    ($($id:ident)*) => {
        /// A rule of the model, `R1`, `R2`, …, or a fault seen in the field, `F1`, `F2`, ….
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "their texts stand in the documents")]
        #[non_exhaustive]
        pub enum RuleId { $($id),* }

        impl RuleId {
            /// All of them: the rules, then the faults.
            pub const ALL: &[Self] = &[$(Self::$id),*];

            /// As it stands in the documents: `R12`, `F3`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$id => stringify!($id)),* }
            }
        }
    };
}

rule_ids! {
    R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R16 R17 R18 R19 R20 R21 R22 R23 R24 R25 R26
    R27 R28 R29 R30 R31 R32 R33 R34 R35 R36 R37 R38 R39 R40 R41 R42 R43 R44 R45 R46 R47 R48 R49 R50
    R51 R52 R53 R54 R55 R56 R57 R58 R59 R60 R61 R62 R63 R64 R65 R66 R67 R68 R69 R70 R71 R72 R73 R74
    R75 R76 R77 R78 R79 R80 R81 R82 R83 R84 R85 R86 R87 R88 R89 R90
    R91 R92
    F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F24 F25 F26
    F27 F28 F29 F30 F31 F32 F33 F34 F35 F36 F37 F38 F39 F40 F41 F42 F43 F44 F45 F46 F47 F48 F49 F50
    F51 F52
}

impl RuleId {
    /// Whether it is a fault seen in the field, not a rule of the model.
    #[must_use]
    pub fn is_fault(self) -> bool {
        self.name().starts_with('F')
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_numbered_without_a_gap() {
        let names: Vec<_> = RuleId::ALL.iter().map(|id| id.name().to_owned()).collect();
        let rules = (1..=92).map(|n| format!("R{n}"));
        let faults = (1..=52).map(|n| format!("F{n}"));
        assert_eq!(names, rules.chain(faults).collect::<Vec<_>>());
        assert!(!RuleId::R92.is_fault() && RuleId::F1.is_fault());
    }
}
