//! Forms in which guidance is inserted into a conversation.

/// Form of an injection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A system message between the others.
    SystemMessage,
    /// A developer message.
    DeveloperMessage,
    /// A user message.
    UserMessage,
    /// One more text block at the end of the last user message.
    TextBlock,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 4] =
        [Self::SystemMessage, Self::DeveloperMessage, Self::UserMessage, Self::TextBlock];

    /// Stable identifier: stored, displayed and used in configuration.
    pub fn id(self) -> &'static str {
        match self {
            Self::SystemMessage => "system-message",
            Self::DeveloperMessage => "developer-message",
            Self::UserMessage => "user-message",
            Self::TextBlock => "text-block",
        }
    }

    /// Returns the channel with this identifier.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.id() == id)
    }
}
