# bash completion for carpool, made by `carpool completion bash`.
_carpool_origins() {
  local line=${COMP_LINE:0:COMP_POINT} whole cut i
  local -a words at=()
  read -ra words <<<"$line"
  whole=${line##*[[:space:]]}
  for ((i = 1; i < ${#words[@]}; i++)); do
    case ${words[i]} in
      --admin|--config|--token-file|--cacert|--client-cert|--client-key) at+=("${words[i]}" "${words[i+1]}") ;;
      --admin=*|--config=*|--token-file=*|--cacert=*|--client-cert=*|--client-key=*) at+=("${words[i]}") ;;
    esac
  done
  COMPREPLY=($(compgen -W "$("${words[0]}" origins "${at[@]}" 2>/dev/null)" -- "$whole"))
  if [[ $whole != "$1" ]]; then
    cut=${whole%"${whole##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
  fi
}
_carpool() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
      top|pools|origins|pool|connections|explain|advice|what-if|history|leaks|threads|overload|ready|config|warm-up|pause|resume|drain|reconnect|log-level|reload|quit|webhook|ca|credential|completion|man) command=${COMP_WORDS[i]}; break ;;
    esac
  done
  COMPREPLY=()
  case $before in
    --token-file|--cacert|--client-cert|--client-key|--config|--certificate|--key|--injection) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --module) COMPREPLY=($(compgen -W 'access admin credentials dial dns egress exec handover health intercept leak listener memory net otlp overload pool reload server summary tls webhook' -- "$word")); return ;;
    --format) COMPREPLY=($(compgen -W 'sh plain' -- "$word")); return ;;
    --admin|--size|--min-idle|--max-waiting|--max-usage|--idle-timeout|--expire-time|--wait-timeout|--wait|--for|--listen|--drain-delay|--host|--days|--trust) return ;;
  esac
  case $command:$word in
    :-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --check --print-config --print-default-config --print-schema --health --demo --version --help' -- "$word")) ;;
    top:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --once --help' -- "$word")) ;;
    advice:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --wait --help' -- "$word")) ;;
    what-if:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --size --min-idle --max-waiting --max-usage --idle-timeout --expire-time --wait-timeout --help' -- "$word")) ;;
    warm-up:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --size --help' -- "$word")) ;;
    pause:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --for --help' -- "$word")) ;;
    drain:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --for --help' -- "$word")) ;;
    log-level:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --module --help' -- "$word")) ;;
    reload:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --dry-run --help' -- "$word")) ;;
    webhook:-*) COMPREPLY=($(compgen -W '--listen --certificate --key --injection --drain-delay --help' -- "$word")) ;;
    ca:-*) COMPREPLY=($(compgen -W '--host --days --replace --trust --format --help' -- "$word")) ;;
    credential:-*) COMPREPLY=($(compgen -W '--help' -- "$word")) ;;
    completion:-*) COMPREPLY=($(compgen -W '--help' -- "$word")) ;;
    man:-*) COMPREPLY=($(compgen -W '--help' -- "$word")) ;;
    *:-*) COMPREPLY=($(compgen -W '--admin --token-file --cacert --client-cert --client-key --config --json --help' -- "$word")) ;;
    :*) COMPREPLY=($(compgen -W 'top pools origins pool connections explain advice what-if history leaks threads overload ready config warm-up pause resume drain reconnect log-level reload quit webhook ca credential completion man' -- "$word")) ;;
    log-level:*) COMPREPLY=($(compgen -W 'trace debug info warn error off' -- "$word")) ;;
    ca:*) COMPREPLY=($(compgen -W 'init bundle env' -- "$word")) ;;
    credential:*) COMPREPLY=($(compgen -W 'basic bearer' -- "$word")) ;;
    completion:*) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")) ;;
    man:*) COMPREPLY=($(compgen -W 'carpool carpool.toml' -- "$word")) ;;
    pool:*|connections:*|explain:*|advice:*|what-if:*|history:*|warm-up:*|pause:*|resume:*|drain:*|reconnect:*) _carpool_origins "$word" ;;
  esac
}
complete -F _carpool carpool
