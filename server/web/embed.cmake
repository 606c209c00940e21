# Writes the source of PageFiles() (page_files.h): cmake -DOUT=… -DFOLDER=… "-DFILES=a;b" -P embed.cmake
set(arrays "")
set(rows "")
set(number 0)
foreach(name ${FILES})
  file(READ ${FOLDER}/${name} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {kFile${number}, sizeof(kFile${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"server/web/page_files.h\"\n\nnamespace hone::web {\nnamespace {\n
${arrays}
constexpr PageFile kPageFiles[] = {\n${rows}};\n
}  // namespace\n
absl::Span<const PageFile> PageFiles() { return kPageFiles; }\n
}  // namespace hone::web\n")
