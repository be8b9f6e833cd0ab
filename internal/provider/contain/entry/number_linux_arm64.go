package entry

const sysExecveat = 281
