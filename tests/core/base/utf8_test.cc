#include <kolo/core/base/utf8.h>

#include <gtest/gtest.h>

namespace kolo {
namespace {

TEST(Utf8, TellsHowLongACharacterIs) {
  EXPECT_EQ(utf8_length("a", 0), 1U);
  EXPECT_EQ(utf8_length("aé", 1), 2U);
  EXPECT_EQ(utf8_length("€", 0), 3U);
  EXPECT_EQ(utf8_length("🙂", 0), 4U);
}

// The table "Well-Formed UTF-8 Byte Sequences" of the Unicode Standard, section 3.9.
TEST(Utf8, RefusesWhatIsNoCharacter) {
  for (const std::string_view text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3z", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf0\x9f\x99", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"})
    EXPECT_EQ(utf8_length(text, 0), 0U) << static_cast<int>(static_cast<unsigned char>(text[0]));
}

TEST(Utf8, GivesTheCharacterOfAByte) {
  const std::string_view text = "a🙂é";
  for (const std::size_t at : {1U, 2U, 3U, 4U}) EXPECT_EQ(utf8_character(text, at), "🙂") << at;
  EXPECT_EQ(utf8_character(text, 0), "a");
  EXPECT_EQ(utf8_character(text, 6), "é");
  EXPECT_EQ(utf8_character("a\x80", 1), "\x80");
  EXPECT_EQ(utf8_character("é\x80", 2), "\x80");
  EXPECT_EQ(utf8_character("\xc3z", 0), "\xc3");
}

TEST(Utf8, CutsNoCharacter) {
  const std::string_view text = "a🙂é";
  EXPECT_EQ(utf8_prefix(text), text);
  for (const std::size_t bytes : {1U, 2U, 3U, 4U}) EXPECT_EQ(utf8_prefix(text, bytes), "a") << bytes;
  EXPECT_EQ(utf8_prefix(text, 5), "a🙂");
  EXPECT_EQ(utf8_prefix(text, 6), "a🙂");
  EXPECT_EQ(utf8_prefix("\xf0\x9f\x99"), "");
  EXPECT_EQ(utf8_prefix(""), "");
  EXPECT_EQ(utf8_prefix("ab\x80\x80\x80\x80"), "ab\x80\x80\x80\x80") << "no UTF-8";
}

}  // namespace
}  // namespace kolo
