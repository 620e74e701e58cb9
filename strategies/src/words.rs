//! Prompt texts as a struct: the compiler reports a missing name and an unused text.

/// Defines the struct of a product's prompt texts, each with our text as the default.
macro_rules! words {
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $name:ident { $($field:ident = $text:expr;)+ }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug)]
        $vis struct $name { $($vis $field: std::sync::Arc<str>,)+ }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $text.into(),)+ }
            }
        }

        impl $crate::descriptor::PromptTexts for $name {
            fn blank() -> Self {
                $name { $($field: "".into(),)+ }
            }
        }
    };
}

pub(crate) use words;
