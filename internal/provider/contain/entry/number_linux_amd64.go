package entry

const sysExecveat = 322
