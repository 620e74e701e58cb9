//! Settings of Aider.

ctxbench_core::settings! {
    /// Settings of Aider, with the source of each default.
    pub(crate) struct AiderSettings {
        /// finished history above this is summarised; auto = a sixteenth of the window within
        /// bounds
        max_chat_history_tokens: tokens = auto,
            "docs/sources/aider.md §1.3, --max-chat-history-tokens";
        /// lower bound of that budget; it decides for windows of less than sixteen times as much
        /// (16,384 by default)
        history_least: tokens = 1_024, "docs/sources/aider.md §1.3";
        /// upper bound of that budget
        history_most: tokens = 8_192, "docs/sources/aider.md §1.3";
        /// budget of the repository map, to which the session's is cut: its first lines, as many as
        /// the program's search takes; auto = an eighth of the window between 1,024 and 4,096; 0 =
        /// no map
        map_tokens: tokens = auto,
            "docs/sources/aider.md §1.3, --map-tokens; lines standing for ranked definitions is \
             ours";
        /// times that budget when the session has no files in the chat (memory files do not count),
        /// if the window has room
        map_multiplier_no_files: count = 2,
            "docs/sources/aider.md §1.3, --map-multiplier-no-files: 2 on the command line, 8 in \
             the class itself";
        /// model of the summary; auto = the cheaper model of the same provider
        weak_model: model = auto, "docs/sources/aider.md §1.1: models = [weak, main]";
        /// the main model describes the change, and an editor model writes the edits in a separate
        /// context
        architect: flag = false, "docs/sources/aider.md §1.6, --architect";
        /// model that writes the edits, with `architect`; auto = the program's choice for the model,
        /// for most the model itself
        editor_model: model = auto, "docs/sources/aider.md §1.6, --editor-model";
        /// pass every complete reply to the editor, including answers to questions; without it, the
        /// user accepts only replies with an edit; only with `architect`
        auto_accept: flag = true,
            "docs/sources/aider.md §1.6, --auto-accept-architect; what the user answers is ours";
        /// set prompt-cache breakpoints where the provider needs them; without it nothing is cached
        /// there
        cache_prompts: flag = false,
            "docs/sources/aider.md §1.4: only with --cache-prompts";
        /// requests of one output token that keep the marked prefix in the cache while the user is
        /// away, each keepalive_delay_ms after the request before; only with cache_prompts, where the provider
        /// needs breakpoints; between turns, until the session's end
        keepalive_pings: count = 0,
            "docs/sources/aider.md §1.4, --cache-keepalive-pings";
        /// delay between a request and the next keep-alive request; the default is five minutes
        /// less five seconds
        keepalive_delay_ms: millis = 295_000,
            "docs/sources/aider.md §1.4, AIDER_CACHE_KEEPALIVE_DELAY, which is in seconds";
        /// position of the repeated editing rules: at the end of the last message if it is the
        /// user's (user), or in a system message after it (sys); omitted where prompt, reminder and
        /// current turns together fill the window
        reminder: choice Reminder { User = "user", Sys = "sys" } = User,
            "docs/sources/aider.md §1.4; a setting of each model there, `user` unless its table \
             says otherwise";
        /// the user's answer to the question whether to send a prompt that does not fit
        oversize: choice Oversize { Proceed = "proceed", Decline = "decline" } = Proceed,
            "docs/sources/aider.md §1.2, check_tokens asks; the answer is ours";
        /// after a restart read the chat history file again, with the damage that does
        restore: flag = false, "docs/sources/aider.md §1.5, --restore-chat-history";
    }
}
