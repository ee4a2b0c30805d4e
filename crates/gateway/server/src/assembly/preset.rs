//! Ready-made configurations: interface and defaults of the gateways that people measure.

/// A ready-made configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The configuration, YAML.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: [Preset; 5] = [
    Preset { name: "baseline", text: include_str!("../../presets/baseline.yaml") },
    Preset { name: "layers", text: include_str!("../../presets/layers.yaml") },
    Preset { name: "policy", text: include_str!("../../presets/policy.yaml") },
    Preset { name: "proxy", text: include_str!("../../presets/proxy.yaml") },
    Preset { name: "llm", text: include_str!("../../presets/llm.yaml") },
];

impl Preset {
    /// The preset of this name.
    pub fn named(name: &str) -> Option<Self> {
        PRESETS.into_iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::spec::Spec;

    #[test]
    fn every_preset_is_a_valid_configuration_with_its_own_name() {
        for preset in PRESETS {
            let spec = Spec::from_yaml(preset.text).unwrap();
            spec.check().unwrap();
            assert_eq!(spec.name, preset.name);
        }
    }
}
