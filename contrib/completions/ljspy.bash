# SPDX-License-Identifier: MIT
# bash completion for ljspy.
#
# Commands and options are those that `ljspy --help` tells of; what follows an
# option goes by the name that its argument has there.

_ljspy_states='running runnable blocked idle uninterruptible parked none interpreted compiled c gc
	recording optimising assembling exit unknown'

_ljspy_help()
{
	"${COMP_WORDS[0]/#\~/$HOME}" "$@" --help 2>/dev/null
}

_ljspy_commands()
{
	_ljspy_help | sed -n '/^Commands/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'
}

_ljspy_options()
{
	_ljspy_help "$1" | sed -n 's/^  \(-[A-Za-z], \|    \)\(--[a-z-]*\).*/\2/p'
}

# _ljspy_argument COMMAND OPTION: what its argument is called, if it has one.
_ljspy_argument()
{
	_ljspy_help "$1" | sed -n "/^  \(-[A-Za-z], \|    \)\{0,1\}$2[ ,]/{
		s/^  \(-[A-Za-z], \|    \)--[a-z-]* \([^ ]\{1,\}\)  .*/\2/p
		q
	}"
}

_ljspy_formats()
{
	_ljspy_help "$1" | tr -s '\n ' ' ' | sed -n 's/.*--format FORMAT \(\([^ ]*, \)*[^ ]*\).*/\1/p' | tr -d ,
}

# Processes that run LuaJIT: `ljspy info` lists several, or shows the only one.
_ljspy_pids()
{
	"${COMP_WORDS[0]/#\~/$HOME}" info 2>&1 | sed -n 's/^ljspy:   -p \([0-9]*\) .*/\1/p; s/^Process \([0-9]*\).*/\1/p'
}

_ljspy_complete_argument()
{
	local command=$1 argument=$2 word=$3

	case $argument in
	*FILE* | RECORDING)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	FORMAT)
		mapfile -t COMPREPLY < <(compgen -W "$(_ljspy_formats "$command")" -- "$word") ;;
	WHICH)
		mapfile -t COMPREPLY < <(compgen -W "fold all none" -- "$word") ;;
	WEIGHT)
		mapfile -t COMPREPLY < <(compgen -W "cpu wall off-cpu alloc alloc-objects" -- "$word") ;;
	CLOCK)
		mapfile -t COMPREPLY < <(compgen -W "cpu wall" -- "$word") ;;
	WHAT)
		local what="path module type coroutine"
		[[ heap == "$command"* ]] || what+=" pid tid comm state phase gc-phase route host status upstream"
		mapfile -t COMPREPLY < <(compgen -W "$what" -- "$word") ;;
	MEASURE)
		mapfile -t COMPREPLY < <(compgen -W "own retained count" -- "$word") ;;
	STATE*)
		mapfile -t COMPREPLY < <(compgen -W "$_ljspy_states" -P "${word%"${word##*,}"}" -- "${word##*,}") ;;
	PID*)
		mapfile -t COMPREPLY < <(compgen -W "$(_ljspy_pids)" -P "${word%"${word##*,}"}" -- "${word##*,}") ;;
	esac
}

_ljspy()
{
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} argument i

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$(_ljspy_commands) help --help --version" -- "$word")
		return
	fi
	if [[ $command == help ]]; then
		((COMP_CWORD > 2)) || mapfile -t COMPREPLY < <(compgen -W "$(_ljspy_commands)" -- "$word")
		return
	fi
	# A command that is started has its own completion.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			elif ((i == COMP_CWORD - 1)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$word")
			else
				compopt -o filenames
				mapfile -t COMPREPLY < <(compgen -f -- "$word")
			fi
			return
		fi
	done
	# bash takes "--format=svg" for three words.
	if [[ $word == = ]]; then
		word=
	elif [[ $previous == = ]]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $previous == -?* ]]; then
		argument=$(_ljspy_argument "$command" "$previous")
		if [[ $argument ]]; then
			_ljspy_complete_argument "$command" "$argument" "$word"
			return
		fi
	fi
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_ljspy_options "$command")" -- "$word")
	elif _ljspy_help "$command" | grep -Eq '^Usage: .* (RECORDING|BEFORE)'; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -F _ljspy ljspy
