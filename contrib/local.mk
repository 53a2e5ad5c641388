# SPDX-License-Identifier: MIT
# What goes into a system beside the programs: units, users, folders, the example configuration.

dist_systemdsystemunit_DATA = contrib/systemd/rcclxd.socket contrib/systemd/rcclxd-admin.socket
nodist_systemdsystemunit_DATA = contrib/systemd/rcclxd.service
# Every key with its default, to copy from: an operator's own file is never overwritten.
dist_doc_DATA += contrib/rcclxd.conf

CLEANFILES += contrib/systemd/rcclxd.service
EXTRA_DIST += contrib/systemd/rcclxd.service.in contrib/systemd/rcclx.sysusers \
	contrib/systemd/rcclx.tmpfiles

contrib/systemd/rcclxd.service: contrib/systemd/rcclxd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib/systemd && \
	sed -e 's|@sbindir[@]|$(sbindir)|g' $(srcdir)/contrib/systemd/rcclxd.service.in >$@

# Both are called rcclx.conf where systemd looks for them.
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)' '$(DESTDIR)$(tmpfilesdir)'
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)/rcclx/tuning.d'
	$(INSTALL_DATA) '$(srcdir)/contrib/systemd/rcclx.sysusers' '$(DESTDIR)$(sysusersdir)/rcclx.conf'
	$(INSTALL_DATA) '$(srcdir)/contrib/systemd/rcclx.tmpfiles' '$(DESTDIR)$(tmpfilesdir)/rcclx.conf'

uninstall-local:
	rm -f '$(DESTDIR)$(sysusersdir)/rcclx.conf' '$(DESTDIR)$(tmpfilesdir)/rcclx.conf'
