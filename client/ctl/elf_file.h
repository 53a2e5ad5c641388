/* SPDX-License-Identifier: MIT */
/* What a program or library imports. */
#ifndef CTL_ELF_FILE_H
#define CTL_ELF_FILE_H

#include "../../shm/rx_base.h"

/** Called for each name; @owner is the caller's. */
typedef void (*elf_name_fn)(void *owner, const char *name);

/**
 * elf_file_imports() - each symbol that @path leaves to others, and each library that it names
 * @symbol:  called with symbols
 * @library: called with what DT_NEEDED names
 *
 * Return: NULL; else a text that says why it cannot be read
 */
const char *elf_file_imports(
	const char *path, elf_name_fn symbol, elf_name_fn library, void *owner);

#endif
