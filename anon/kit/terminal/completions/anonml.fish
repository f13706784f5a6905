function __anonml_at
    set -l path ''
    for word in (commandline -opc)[2..-1]
        switch "$path $word"
            case ' peer' ' peer autostart' ' peer autostart off' ' peer autostart on' ' peer autostart status' ' peer backup' ' peer begin-anew' ' peer budget' ' peer delete' ' peer erase' ' peer evidence' ' peer fingerprint' ' peer import' ' peer join' ' peer key' ' peer leave' ' peer look' ' peer notify' ' peer notify off' ' peer notify on' ' peer notify status' ' peer notify test' ' peer open' ' peer pair' ' peer passphrase' ' peer pause' ' peer predict' ' peer receipts' ' peer report' ' peer restore' ' peer resume' ' peer run' ' peer status' ' peer tables' ' peer tray' ' peer window' ' aggregator' ' aggregator allow' ' aggregator audit' ' aggregator backup' ' aggregator desk' ' aggregator export' ' aggregator export-model' ' aggregator fingerprint' ' aggregator init' ' aggregator invite' ' aggregator move' ' aggregator openapi' ' aggregator report' ' aggregator restore' ' aggregator serve' ' aggregator status' ' study' ' study init' ' study lint' ' study plan' ' study publish' ' study schema' ' study synthesize' ' teller' ' teller allow' ' teller doctor' ' teller init' ' teller serve' ' teller status' ' teller words' ' simulate' ' evidence' ' evidence check' ' evidence compare' ' demo' ' testnet' ' testnet down' ' testnet status' ' testnet up' ' doctor' ' support-bundle' ' completion' ' completion bash' ' completion zsh' ' completion fish' ' help' ' help peer' ' help peer autostart' ' help peer autostart off' ' help peer autostart on' ' help peer autostart status' ' help peer backup' ' help peer begin-anew' ' help peer budget' ' help peer delete' ' help peer erase' ' help peer evidence' ' help peer fingerprint' ' help peer import' ' help peer join' ' help peer key' ' help peer leave' ' help peer look' ' help peer notify' ' help peer notify off' ' help peer notify on' ' help peer notify status' ' help peer notify test' ' help peer open' ' help peer pair' ' help peer passphrase' ' help peer pause' ' help peer predict' ' help peer receipts' ' help peer report' ' help peer restore' ' help peer resume' ' help peer run' ' help peer status' ' help peer tables' ' help peer tray' ' help peer window' ' help aggregator' ' help aggregator allow' ' help aggregator audit' ' help aggregator backup' ' help aggregator desk' ' help aggregator export' ' help aggregator export-model' ' help aggregator fingerprint' ' help aggregator init' ' help aggregator invite' ' help aggregator move' ' help aggregator openapi' ' help aggregator report' ' help aggregator restore' ' help aggregator serve' ' help aggregator status' ' help study' ' help study init' ' help study lint' ' help study plan' ' help study publish' ' help study schema' ' help study synthesize' ' help teller' ' help teller allow' ' help teller doctor' ' help teller init' ' help teller serve' ' help teller status' ' help teller words' ' help simulate' ' help evidence' ' help evidence check' ' help evidence compare' ' help demo' ' help testnet' ' help testnet down' ' help testnet status' ' help testnet up' ' help doctor' ' help support-bundle' ' help completion' ' help completion bash' ' help completion zsh' ' help completion fish'
                set path "$path $word"
        end
    end
    test "$path" = "$argv[1]"
end
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a peer -d 'Keep your data, join studies, see what was sent.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a aggregator -d 'Run studies: invite, serve, watch, export, audit.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a study -d 'Write, check and publish a study; try it on synthetic data.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a teller -d 'Be a teller: add up shares of a study'"'"'s vectors, with noise.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a simulate -d 'Run the study many times on your data and print means with standard errors, beside what no privacy would give.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a evidence -d 'Check or make a proof against an aggregator.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a demo -d 'Run a whole study with real peers on this machine, and say in words what came of it. The report is kept.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a testnet -d 'A private Tor network on this machine, to try everything on.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a doctor -d 'Exit code 1 when something a peer needs does not work.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a support-bundle -d 'Show everything that the bundle would hold, ask, and write it. Nothing is sent anywhere.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a completion -d 'Print a shell'"'"'s completion script.'
complete -c anonml -f -n '__anonml_at '"'"''"'"'' -a help -d 'Show what a command is for.'
complete -c anonml -n '__anonml_at '"'"''"'"'' -l help
complete -c anonml -n '__anonml_at '"'"''"'"'' -l version
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a autostart -d 'Start your peer when you log in, or not any more.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a backup -d 'Write everything of this peer into one file. Keep it secret: it holds your data.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a begin-anew -d 'Make a new ledger in a home that lost its own, with the whole budget counted as spent. A backup is better.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a budget -d 'Your one lifetime budget: what is left, what each study holds of it, and your limits for a single study.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a delete -d 'Delete one of your tables, for good. Says first what that means for studies under way.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a erase -d 'Erase everything of yours but receipts, what was spent, and proofs; leave all studies. Says first what goes.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a evidence -d 'Proofs against an aggregator, if any were kept. Anyone checks one: `anonml evidence check FILE`.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a fingerprint -d 'The published documents that you saw, as words and a QR code to compare with a public place or with other'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a import -d 'Copy a file of yours into your own tables. They stay on this machine.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a join -d 'Show a study, ask you, and on a yes reserve its epsilon and store your enrolment. `run` sends it.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a key -d 'Your key in a study that admits by a list, for staff to put on it: after `join`, before `run` sends it.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a leave -d 'Leave a study. Before its enrolment closes you are struck off the roster; later nothing more is sent.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a look -d 'Fetch and verify a study and show what it asks and costs. Nothing from your data leaves.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a notify -d 'Notifications that something is, never what; off unless switched on.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a open -d 'Your studies, data and budget in a browser, on this machine only. It runs your studies too, like `run`.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a pair -d 'Open this peer to a phone of yours, for a while: bring files, read what studies ask, pause. Nothing else.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a passphrase -d 'Put your studies'"'"' secrets under a passphrase, or change it: the old one is asked for first.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a pause -d 'Do nothing for a time: no packet, no connection. Of all your studies, or of one with --study.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a predict -d 'A published model'"'"'s prediction for you, or for people in a file. Computed here; nothing leaves.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a receipts -d 'The released packets, one by one, with their cost: never their content.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a report -d 'Fetch the published report of a study and write it as a page that can neither run nor fetch anything.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a restore -d 'Restore into a directory that is empty. No budget is refilled, and nothing is answered twice.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a resume -d 'Go on before a pause ends: of all your studies, or of one with --study.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a run -d 'Do what is due, at its own random time, until stopped (Ctrl-C). Safe to stop or kill at any moment.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a status -d 'Your studies and where they stand.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a tables -d 'Your tables and their columns.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a tray -d 'An icon in the tray: open your page, pause for a day, quit. It runs your studies too, like `run`.'
complete -c anonml -f -n '__anonml_at '"'"' peer'"'"'' -a window -d 'Your page in a window of its own; in your browser where toga is not installed. It runs your studies too.'
complete -c anonml -n '__anonml_at '"'"' peer'"'"'' -l help
complete -c anonml -f -n '__anonml_at '"'"' peer autostart'"'"'' -a off -d 'Remove what `on` wrote, and nothing else. The started program is ended; your studies and data stay as they'
complete -c anonml -f -n '__anonml_at '"'"' peer autostart'"'"'' -a on -d 'Start `anonml peer run --stay` at every login, with this home and route (Linux: at once, where systemd runs).'
complete -c anonml -f -n '__anonml_at '"'"' peer autostart'"'"'' -a status -d 'Show if a peer of yours starts at login, and what would keep it from that.'
complete -c anonml -n '__anonml_at '"'"' peer autostart'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer autostart off'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer autostart off'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer autostart on'"'"'' -l as-root
complete -c anonml -n '__anonml_at '"'"' peer autostart on'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer autostart on'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer autostart on'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer autostart status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer autostart status'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer autostart status'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer backup'"'"'' -l final
complete -c anonml -n '__anonml_at '"'"' peer backup'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer backup'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer backup'"'"'' -l no-final
complete -c anonml -n '__anonml_at '"'"' peer begin-anew'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer begin-anew'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer begin-anew'"'"'' -l yes
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l lifetime
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l measure
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l minimum-cohort
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l minimum-window
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l per-study
complete -c anonml -n '__anonml_at '"'"' peer budget'"'"'' -l unit
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l erase-answers
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l leave-studies
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer delete'"'"'' -l yes
complete -c anonml -n '__anonml_at '"'"' peer erase'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer erase'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer erase'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer erase'"'"'' -l silent
complete -c anonml -n '__anonml_at '"'"' peer erase'"'"'' -l yes
complete -c anonml -n '__anonml_at '"'"' peer evidence'"'"'' -l export
complete -c anonml -n '__anonml_at '"'"' peer evidence'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer evidence'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer evidence'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer evidence'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l export
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l number
complete -c anonml -n '__anonml_at '"'"' peer fingerprint'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l all-rows
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l append
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l column
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l numbers
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l person
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l preview
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l replace
complete -c anonml -n '__anonml_at '"'"' peer import'"'"'' -l table
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l epsilon
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer join'"'"'' -l yes
complete -c anonml -n '__anonml_at '"'"' peer key'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer key'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer key'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer leave'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer leave'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer leave'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer leave'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' peer look'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer look'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer look'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer look'"'"'' -l queries
complete -c anonml -n '__anonml_at '"'"' peer look'"'"'' -l route
complete -c anonml -f -n '__anonml_at '"'"' peer notify'"'"'' -a off -d 'No notification any more.'
complete -c anonml -f -n '__anonml_at '"'"' peer notify'"'"'' -a on -d 'Let `run --stay`, `open` and `tray` notify you, an hour late or so: nobody learns from it when a packet left.'
complete -c anonml -f -n '__anonml_at '"'"' peer notify'"'"'' -a status -d 'Show if you are notified.'
complete -c anonml -f -n '__anonml_at '"'"' peer notify'"'"'' -a test -d 'Show one notification now.'
complete -c anonml -n '__anonml_at '"'"' peer notify'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer notify off'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer notify off'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer notify on'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer notify on'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer notify status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer notify status'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer notify status'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer notify test'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l browser
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l no-browser
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l port
complete -c anonml -n '__anonml_at '"'"' peer open'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l list
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l minutes
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l name
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l off
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l revoke
complete -c anonml -n '__anonml_at '"'"' peer pair'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer passphrase'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer passphrase'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer pause'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer pause'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer pause'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l as-of
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l output
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l people
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l person
complete -c anonml -n '__anonml_at '"'"' peer predict'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer receipts'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer receipts'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer receipts'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer report'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer report'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer report'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer restore'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer restore'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer restore'"'"'' -l time-is-right
complete -c anonml -n '__anonml_at '"'"' peer resume'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer resume'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer resume'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l max-seconds
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l no-once
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l once
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer run'"'"'' -l stay
complete -c anonml -n '__anonml_at '"'"' peer status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer status'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer status'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer tables'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer tables'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer tables'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' peer tray'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer tray'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer tray'"'"'' -l route
complete -c anonml -n '__anonml_at '"'"' peer window'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' peer window'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' peer window'"'"'' -l route
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a allow -d 'Put keys on the list of a study with admission = "allow-list".'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a audit -d 'Re-verify every signature and token, recompute model and report, and compare every file of the folder.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a backup -d 'Write keys and a consistent copy of the database into one file. Keep it secret.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a desk -d 'Serve peers, carry every study on, and show the staff'"'"'s pages on this machine; prints a link that works once.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a export -d 'Write everything a study has published, for `audit`, for reading, or for a public place.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a export-model -d 'Write a published model as ONNX or skops. Both predict what the model predicts.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a fingerprint -d 'The study'"'"'s fingerprint and that of every document signed so far, for a public place; peers compare theirs.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a init -d 'Make the aggregator'"'"'s directory and its signing key (done by the other commands too, when it is missing).'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a invite -d 'Draw invite links, one line each. Their codes are stored nowhere: hand them out, then forget them.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a move -d 'Move all studies from the home'"'"'s file to a PostgreSQL server. Stop the aggregator first.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a openapi -d 'Print the OpenAPI document of an HTTP interface.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a report -d 'Write a published study'"'"'s report, with errors on a test set if one is given; as PDF if the name ends in .pdf.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a restore -d 'Unpack a backup into a directory that does not exist yet.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a serve -d 'Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time.'
complete -c anonml -f -n '__anonml_at '"'"' aggregator'"'"'' -a status -d 'How every study stands. Counts move in steps of 50: of members until enrolment has closed, of packets until'
complete -c anonml -n '__anonml_at '"'"' aggregator'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator allow'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator allow'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator allow'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' aggregator audit'"'"'' -l compute
complete -c anonml -n '__anonml_at '"'"' aggregator audit'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator audit'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator audit'"'"'' -l key
complete -c anonml -n '__anonml_at '"'"' aggregator audit'"'"'' -l report
complete -c anonml -n '__anonml_at '"'"' aggregator backup'"'"'' -l final
complete -c anonml -n '__anonml_at '"'"' aggregator backup'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator backup'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator backup'"'"'' -l no-final
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l desk-port
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l onion
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l open
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l port
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l processes
complete -c anonml -n '__anonml_at '"'"' aggregator desk'"'"'' -l restored
complete -c anonml -n '__anonml_at '"'"' aggregator export'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator export'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator export'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator export'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' aggregator export-model'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator export-model'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator fingerprint'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator fingerprint'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator fingerprint'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator fingerprint'"'"'' -l qr
complete -c anonml -n '__anonml_at '"'"' aggregator fingerprint'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' aggregator init'"'"'' -l database
complete -c anonml -n '__anonml_at '"'"' aggregator init'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator init'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator init'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l address
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l count
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l csv
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l qr
complete -c anonml -n '__anonml_at '"'"' aggregator invite'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' aggregator move'"'"'' -l database
complete -c anonml -n '__anonml_at '"'"' aggregator move'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator move'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator openapi'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator report'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator report'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator report'"'"'' -l person
complete -c anonml -n '__anonml_at '"'"' aggregator report'"'"'' -l study
complete -c anonml -n '__anonml_at '"'"' aggregator report'"'"'' -l test
complete -c anonml -n '__anonml_at '"'"' aggregator restore'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator restore'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l desk-port
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l ephemeral
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l host
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l invites
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l no-open-desk
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l no-until-published
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l onion
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l onions
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l open-desk
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l port
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l processes
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l restored
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l until-published
complete -c anonml -n '__anonml_at '"'"' aggregator serve'"'"'' -l workers
complete -c anonml -n '__anonml_at '"'"' aggregator status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' aggregator status'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' aggregator status'"'"'' -l json
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a init -d 'Write a commented example to start from, and beside it the schema by which editors check it as you type.'
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a lint -d 'Check a study file and its queries, and show what it would ask and cost, and whether the group is large enough.'
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a plan -d 'Compare designs on people made up from what the study declares (never on private data) and keep the best.'
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a publish -d 'Publish a study: from now on nothing in it can change, and its clock runs.'
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a schema -d 'Print the JSON Schema of study files. `#:schema FILE` in a study'"'"'s first line tells editors where it is.'
complete -c anonml -f -n '__anonml_at '"'"' study'"'"'' -a synthesize -d 'Write made-up people for a pilot (`anonml simulate STUDY.toml --data FILE`) before anyone is asked.'
complete -c anonml -n '__anonml_at '"'"' study'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study init'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study lint'"'"'' -l cohort
complete -c anonml -n '__anonml_at '"'"' study lint'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study lint'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l chart
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l cohort
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l compute
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l epsilon
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l no-only
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l only
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l populations
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l seed
complete -c anonml -n '__anonml_at '"'"' study plan'"'"'' -l write
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l address
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l loopback
complete -c anonml -n '__anonml_at '"'"' study publish'"'"'' -l onions
complete -c anonml -n '__anonml_at '"'"' study schema'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study synthesize'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' study synthesize'"'"'' -l output
complete -c anonml -n '__anonml_at '"'"' study synthesize'"'"'' -l rows
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a allow -d 'Name the aggregators that may ask this teller to serve their studies; nobody else may then. No keys: list them.'
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a doctor -d 'Look at this teller: installation, home, words, clock, disk, and if it is reachable. Exit code 1 for a fault.'
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a init -d 'Make the teller'"'"'s directory, its lasting key and its onion address; or give it another name.'
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a serve -d 'Answer the aggregators of this teller'"'"'s studies, until stopped (Ctrl-C). Safe to stop or kill at any time.'
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a status -d 'The studies that this teller countersigned, how far each of their sums is, and a disk that takes nothing.'
complete -c anonml -f -n '__anonml_at '"'"' teller'"'"'' -a words -d 'This teller'"'"'s name, address and words: put the words in a public place of your own, for owners to compare.'
complete -c anonml -n '__anonml_at '"'"' teller'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller allow'"'"'' -l everybody
complete -c anonml -n '__anonml_at '"'"' teller allow'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller allow'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller allow'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' teller doctor'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller doctor'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller doctor'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l loopback
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l name
complete -c anonml -n '__anonml_at '"'"' teller init'"'"'' -l port
complete -c anonml -n '__anonml_at '"'"' teller serve'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller serve'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller serve'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' teller status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller status'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller status'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' teller words'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' teller words'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' teller words'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l compute
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l data
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l epsilon
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l label
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l no-shuffle-labels
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l peers
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l person
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l positive
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l seed
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l shuffle-labels
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l test
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l test-share
complete -c anonml -n '__anonml_at '"'"' simulate'"'"'' -l trials
complete -c anonml -f -n '__anonml_at '"'"' evidence'"'"'' -a check -d 'Verify evidence with nothing but the file. Exit code 0: it proves what it prints; 5: it proves nothing.'
complete -c anonml -f -n '__anonml_at '"'"' evidence'"'"'' -a compare -d 'Compare what two people were told. Exit code 0: one story as far as both go; 1: two, and here is the proof.'
complete -c anonml -n '__anonml_at '"'"' evidence'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' evidence check'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' evidence check'"'"'' -l invite
complete -c anonml -n '__anonml_at '"'"' evidence check'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' evidence check'"'"'' -l key
complete -c anonml -n '__anonml_at '"'"' evidence compare'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' evidence compare'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' evidence compare'"'"'' -l output
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l control
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l data
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l keep
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l no-control
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l no-shuffle-labels
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l peers
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l seed
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l shuffle-labels
complete -c anonml -n '__anonml_at '"'"' demo'"'"'' -l tor
complete -c anonml -f -n '__anonml_at '"'"' testnet'"'"'' -a down -d 'End the network and all its processes, and remove its files.'
complete -c anonml -f -n '__anonml_at '"'"' testnet'"'"'' -a status -d 'Show if a network runs, since when, and how much memory it holds (proportional and resident).'
complete -c anonml -f -n '__anonml_at '"'"' testnet'"'"'' -a up -d 'Start one authority, four relays and a client; return once an onion service has answered.'
complete -c anonml -n '__anonml_at '"'"' testnet'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' testnet down'"'"'' -l folder
complete -c anonml -n '__anonml_at '"'"' testnet down'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' testnet down'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' testnet status'"'"'' -l folder
complete -c anonml -n '__anonml_at '"'"' testnet status'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' testnet status'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' testnet up'"'"'' -l address
complete -c anonml -n '__anonml_at '"'"' testnet up'"'"'' -l folder
complete -c anonml -n '__anonml_at '"'"' testnet up'"'"'' -l foreground
complete -c anonml -n '__anonml_at '"'"' testnet up'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' testnet up'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' doctor'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' doctor'"'"'' -l json
complete -c anonml -n '__anonml_at '"'"' support-bundle'"'"'' -l help
complete -c anonml -n '__anonml_at '"'"' support-bundle'"'"'' -l home
complete -c anonml -n '__anonml_at '"'"' support-bundle'"'"'' -l show
complete -c anonml -n '__anonml_at '"'"' support-bundle'"'"'' -l yes
complete -c anonml -f -n '__anonml_at '"'"' completion'"'"'' -a bash -d ''
complete -c anonml -f -n '__anonml_at '"'"' completion'"'"'' -a zsh -d ''
complete -c anonml -f -n '__anonml_at '"'"' completion'"'"'' -a fish -d ''
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a peer -d 'Keep your data, join studies, see what was sent.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a aggregator -d 'Run studies: invite, serve, watch, export, audit.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a study -d 'Write, check and publish a study; try it on synthetic data.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a teller -d 'Be a teller: add up shares of a study'"'"'s vectors, with noise.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a simulate -d 'Run the study many times on your data and print means with standard errors, beside what no privacy would give.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a evidence -d 'Check or make a proof against an aggregator.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a demo -d 'Run a whole study with real peers on this machine, and say in words what came of it. The report is kept.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a testnet -d 'A private Tor network on this machine, to try everything on.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a doctor -d 'Exit code 1 when something a peer needs does not work.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a support-bundle -d 'Show everything that the bundle would hold, ask, and write it. Nothing is sent anywhere.'
complete -c anonml -f -n '__anonml_at '"'"' help'"'"'' -a completion -d 'Print a shell'"'"'s completion script.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a autostart -d 'Start your peer when you log in, or not any more.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a backup -d 'Write everything of this peer into one file. Keep it secret: it holds your data.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a begin-anew -d 'Make a new ledger in a home that lost its own, with the whole budget counted as spent. A backup is better.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a budget -d 'Your one lifetime budget: what is left, what each study holds of it, and your limits for a single study.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a delete -d 'Delete one of your tables, for good. Says first what that means for studies under way.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a erase -d 'Erase everything of yours but receipts, what was spent, and proofs; leave all studies. Says first what goes.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a evidence -d 'Proofs against an aggregator, if any were kept. Anyone checks one: `anonml evidence check FILE`.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a fingerprint -d 'The published documents that you saw, as words and a QR code to compare with a public place or with other'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a import -d 'Copy a file of yours into your own tables. They stay on this machine.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a join -d 'Show a study, ask you, and on a yes reserve its epsilon and store your enrolment. `run` sends it.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a key -d 'Your key in a study that admits by a list, for staff to put on it: after `join`, before `run` sends it.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a leave -d 'Leave a study. Before its enrolment closes you are struck off the roster; later nothing more is sent.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a look -d 'Fetch and verify a study and show what it asks and costs. Nothing from your data leaves.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a notify -d 'Notifications that something is, never what; off unless switched on.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a open -d 'Your studies, data and budget in a browser, on this machine only. It runs your studies too, like `run`.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a pair -d 'Open this peer to a phone of yours, for a while: bring files, read what studies ask, pause. Nothing else.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a passphrase -d 'Put your studies'"'"' secrets under a passphrase, or change it: the old one is asked for first.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a pause -d 'Do nothing for a time: no packet, no connection. Of all your studies, or of one with --study.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a predict -d 'A published model'"'"'s prediction for you, or for people in a file. Computed here; nothing leaves.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a receipts -d 'The released packets, one by one, with their cost: never their content.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a report -d 'Fetch the published report of a study and write it as a page that can neither run nor fetch anything.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a restore -d 'Restore into a directory that is empty. No budget is refilled, and nothing is answered twice.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a resume -d 'Go on before a pause ends: of all your studies, or of one with --study.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a run -d 'Do what is due, at its own random time, until stopped (Ctrl-C). Safe to stop or kill at any moment.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a status -d 'Your studies and where they stand.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a tables -d 'Your tables and their columns.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a tray -d 'An icon in the tray: open your page, pause for a day, quit. It runs your studies too, like `run`.'
complete -c anonml -f -n '__anonml_at '"'"' help peer'"'"'' -a window -d 'Your page in a window of its own; in your browser where toga is not installed. It runs your studies too.'
complete -c anonml -f -n '__anonml_at '"'"' help peer autostart'"'"'' -a off -d 'Remove what `on` wrote, and nothing else. The started program is ended; your studies and data stay as they'
complete -c anonml -f -n '__anonml_at '"'"' help peer autostart'"'"'' -a on -d 'Start `anonml peer run --stay` at every login, with this home and route (Linux: at once, where systemd runs).'
complete -c anonml -f -n '__anonml_at '"'"' help peer autostart'"'"'' -a status -d 'Show if a peer of yours starts at login, and what would keep it from that.'
complete -c anonml -f -n '__anonml_at '"'"' help peer notify'"'"'' -a off -d 'No notification any more.'
complete -c anonml -f -n '__anonml_at '"'"' help peer notify'"'"'' -a on -d 'Let `run --stay`, `open` and `tray` notify you, an hour late or so: nobody learns from it when a packet left.'
complete -c anonml -f -n '__anonml_at '"'"' help peer notify'"'"'' -a status -d 'Show if you are notified.'
complete -c anonml -f -n '__anonml_at '"'"' help peer notify'"'"'' -a test -d 'Show one notification now.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a allow -d 'Put keys on the list of a study with admission = "allow-list".'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a audit -d 'Re-verify every signature and token, recompute model and report, and compare every file of the folder.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a backup -d 'Write keys and a consistent copy of the database into one file. Keep it secret.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a desk -d 'Serve peers, carry every study on, and show the staff'"'"'s pages on this machine; prints a link that works once.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a export -d 'Write everything a study has published, for `audit`, for reading, or for a public place.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a export-model -d 'Write a published model as ONNX or skops. Both predict what the model predicts.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a fingerprint -d 'The study'"'"'s fingerprint and that of every document signed so far, for a public place; peers compare theirs.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a init -d 'Make the aggregator'"'"'s directory and its signing key (done by the other commands too, when it is missing).'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a invite -d 'Draw invite links, one line each. Their codes are stored nowhere: hand them out, then forget them.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a move -d 'Move all studies from the home'"'"'s file to a PostgreSQL server. Stop the aggregator first.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a openapi -d 'Print the OpenAPI document of an HTTP interface.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a report -d 'Write a published study'"'"'s report, with errors on a test set if one is given; as PDF if the name ends in .pdf.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a restore -d 'Unpack a backup into a directory that does not exist yet.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a serve -d 'Answer peers and carry every study to its end, until stopped (Ctrl-C). Safe to stop or kill at any time.'
complete -c anonml -f -n '__anonml_at '"'"' help aggregator'"'"'' -a status -d 'How every study stands. Counts move in steps of 50: of members until enrolment has closed, of packets until'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a init -d 'Write a commented example to start from, and beside it the schema by which editors check it as you type.'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a lint -d 'Check a study file and its queries, and show what it would ask and cost, and whether the group is large enough.'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a plan -d 'Compare designs on people made up from what the study declares (never on private data) and keep the best.'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a publish -d 'Publish a study: from now on nothing in it can change, and its clock runs.'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a schema -d 'Print the JSON Schema of study files. `#:schema FILE` in a study'"'"'s first line tells editors where it is.'
complete -c anonml -f -n '__anonml_at '"'"' help study'"'"'' -a synthesize -d 'Write made-up people for a pilot (`anonml simulate STUDY.toml --data FILE`) before anyone is asked.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a allow -d 'Name the aggregators that may ask this teller to serve their studies; nobody else may then. No keys: list them.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a doctor -d 'Look at this teller: installation, home, words, clock, disk, and if it is reachable. Exit code 1 for a fault.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a init -d 'Make the teller'"'"'s directory, its lasting key and its onion address; or give it another name.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a serve -d 'Answer the aggregators of this teller'"'"'s studies, until stopped (Ctrl-C). Safe to stop or kill at any time.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a status -d 'The studies that this teller countersigned, how far each of their sums is, and a disk that takes nothing.'
complete -c anonml -f -n '__anonml_at '"'"' help teller'"'"'' -a words -d 'This teller'"'"'s name, address and words: put the words in a public place of your own, for owners to compare.'
complete -c anonml -f -n '__anonml_at '"'"' help evidence'"'"'' -a check -d 'Verify evidence with nothing but the file. Exit code 0: it proves what it prints; 5: it proves nothing.'
complete -c anonml -f -n '__anonml_at '"'"' help evidence'"'"'' -a compare -d 'Compare what two people were told. Exit code 0: one story as far as both go; 1: two, and here is the proof.'
complete -c anonml -f -n '__anonml_at '"'"' help testnet'"'"'' -a down -d 'End the network and all its processes, and remove its files.'
complete -c anonml -f -n '__anonml_at '"'"' help testnet'"'"'' -a status -d 'Show if a network runs, since when, and how much memory it holds (proportional and resident).'
complete -c anonml -f -n '__anonml_at '"'"' help testnet'"'"'' -a up -d 'Start one authority, four relays and a client; return once an onion service has answered.'
complete -c anonml -f -n '__anonml_at '"'"' help completion'"'"'' -a bash -d ''
complete -c anonml -f -n '__anonml_at '"'"' help completion'"'"'' -a zsh -d ''
complete -c anonml -f -n '__anonml_at '"'"' help completion'"'"'' -a fish -d ''
