/* SPDX-License-Identifier: MIT */
#include "elf_file.h"

#include "../../shm/rx_cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>

static void each_symbol(
	Elf *elf, Elf_Scn *section, const GElf_Shdr *header, elf_name_fn fn, void *owner)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < n && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (symbol.st_shndx == SHN_UNDEF && name && name[0])
			fn(owner, name);
	}
}

static void each_library(
	Elf *elf, Elf_Scn *section, const GElf_Shdr *header, elf_name_fn fn, void *owner)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Dyn entry;

	for (size_t i = 0; i < n && gelf_getdyn(data, (int)i, &entry); i++) {
		const char *name = entry.d_tag == DT_NEEDED
					   ? elf_strptr(elf, header->sh_link, entry.d_un.d_val)
					   : NULL;

		if (name)
			fn(owner, name);
	}
}

const char *elf_file_imports(const char *path, elf_name_fn symbol, elf_name_fn library, void *owner)
{
	RX_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (fd < 0)
		return strerror(errno);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return "this libelf is too old";
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		(void)elf_end(elf);
		return "not an ELF file, as programs and libraries are";
	}
	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_DYNSYM)
			each_symbol(elf, section, &header, symbol, owner);
		if (header.sh_type == SHT_DYNAMIC)
			each_library(elf, section, &header, library, owner);
	}
	(void)elf_end(elf);
	return NULL;
}
